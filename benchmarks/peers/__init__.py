"""Other queues, each in an environment of its own, behind one small command line."""
