"""Every number that bounds a page."""

# A count stops here, and so does paging: beyond it one filters, and no page counts
# a million rows or skips over them.
MAX_COUNT = 10_000
ROWS_PER_PAGE = 50
MAX_TIMELINE_EVENTS = 200

# Each retry is a transaction of its own; this many are done within seconds.
MAX_RETRIES_AT_ONCE = 500
MAX_REASONS_SHOWN = 10

# A search for a rare text reads a whole table; it gives up rather than load the database.
MAX_LIST_MS = 5_000

# Characters of a text that one page shows; the rest stays in the database.
LIST_CHARS = 120
TIMELINE_MESSAGE_CHARS = 500
TIMELINE_DATA_CHARS = 1_000
TIMELINE_TRACEBACK_CHARS = 4_000
PAGE_CHARS = 20_000
