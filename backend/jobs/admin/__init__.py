"""The queue in the admin: read it all, change nothing, retry what failed.

Made for whoever is called at night. No form writes: adding, changing and deleting
are refused whatever is posted, and a retry goes through `services.retry_job`, so
no page can put a job in a state the services would refuse.

Every page costs the same whatever the tables hold: a fixed number of queries,
counts that stop, orders that an index serves, and texts that the database cuts
before they travel. `limits` has every number of it.
"""

from jobs.admin.events import JobEventAdmin
from jobs.admin.jobs import JobAdmin

__all__ = ["JobAdmin", "JobEventAdmin"]
