"""An app whose one handler does nothing."""
