// The starting point that its page on performance names.
export default {
  worker: {
    concurrentJobs: 10,
    localQueue: { size: 11 },
    completeJobBatchDelay: 250,
    failJobBatchDelay: 250,
  },
};
