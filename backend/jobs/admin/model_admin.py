"""Unfold's admin, as Django's types and Django 6.1 take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models.fields import BLANK_CHOICE_DASH
from django.http import HttpRequest

if TYPE_CHECKING:
    # Unfold has no types; its admin is Django's in what is used here.
    from django.contrib import admin

    UnfoldAdmin = admin.ModelAdmin[Any]
else:
    from unfold.admin import ModelAdmin as UnfoldAdmin


class ModelAdmin(UnfoldAdmin):
    """What every admin here derives from."""

    def get_action_choices(
        self,
        request: HttpRequest,
        default_choices: Any = BLANK_CHOICE_DASH,
        action_location: Any = None,
    ) -> list[tuple[str, str]]:
        """Django 6.1 asks for a place too, which Unfold's own form of this does not take."""
        return super().get_action_choices(request, default_choices)
