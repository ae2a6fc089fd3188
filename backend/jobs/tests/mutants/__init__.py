"""The code broken one line at a time, and the tests that find it out.

    cd backend && python -m jobs.tests.mutants

copies `backend/` into a temporary directory, sees that the tests pass there, and then for
each mutant of the table changes the one line, runs the test that is to notice, and prints
what it said. Exits 1 when a mutant survives.
"""
