"""The queue in the admin: read it all, change nothing, retry what failed.

Made for whoever is called at night. No form writes: adding, changing and deleting
are refused whatever is posted, and a retry goes through `services.retry_job`, so
no page can put a job in a state the services would refuse.

Every page costs the same whatever the tables hold: a fixed number of queries,
counts that stop, orders that an index serves, and texts that the database cuts
before they travel. `limits` has every number of it.

Its pages are drawn by Unfold: a project that does not have that among its apps has the
dashboard, and these models are not in its admin.
"""

from django.apps import apps

if apps.is_installed("unfold"):
    from jobs.admin.events import JobEventAdmin as JobEventAdmin
    from jobs.admin.jobs import JobAdmin as JobAdmin
