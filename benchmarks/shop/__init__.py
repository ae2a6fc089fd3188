"""An app with the handlers of a small shop, for a dashboard that is to be looked at."""
