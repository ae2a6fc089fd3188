"""The accounts' pages."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

pytestmark = pytest.mark.django_db

UNFOLD_INPUT = "border-base-200"
NEW_PASSWORD = "correct horse battery"


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss")


@pytest.fixture
def browser(boss: User) -> Client:
    client = Client()
    client.force_login(boss)
    return client


@pytest.mark.parametrize(
    "page",
    [
        "auth/user/",
        "auth/user/?q=boss&is_staff__exact=1&o=-1",
        "auth/user/add/",
        "auth/user/{user}/change/",
        "auth/user/{user}/password/",
        "auth/user/{user}/history/",
        "auth/user/{user}/delete/",
        "auth/group/",
        "auth/group/add/",
        "auth/group/{group}/change/",
        "password_change/",
    ],
)
def test_every_page_of_the_accounts_is_styled_as_the_others(
    page: str, browser: Client, boss: User
) -> None:
    group = Group.objects.create(name="operators")
    response = browser.get("/admin/" + page.format(user=boss.pk, group=group.pk))
    assert response.status_code == 200
    html = response.content.decode()
    assert "unfold/" in html
    if page.endswith(("/add/", "/change/", "/password/")):
        assert UNFOLD_INPUT in html
        # Django's own widgets carry these and no style here.
        for plain in ("vTextField", "vSelectMultiple", "submit-row"):
            assert f'class="{plain}"' not in html


def test_an_account_is_made_changed_and_given_a_password(browser: Client) -> None:
    made = browser.post(
        "/admin/auth/user/add/",
        {
            "username": "night",
            "usable_password": "true",
            "password1": NEW_PASSWORD,
            "password2": NEW_PASSWORD,
        },
    )
    user = User.objects.get(username="night")
    assert (made.status_code, made["Location"]) == (302, f"/admin/auth/user/{user.pk}/change/")
    assert user.check_password(NEW_PASSWORD)

    permission = Permission.objects.get(codename="change_job")
    browser.post(
        f"/admin/auth/user/{user.pk}/change/",
        {
            "username": "night",
            "is_active": "on",
            "is_staff": "on",
            "user_permissions": [permission.pk],
            "date_joined_0": "2026-01-01",
            "date_joined_1": "00:00:00",
        },
    )
    user.refresh_from_db()
    assert user.is_staff
    assert user.has_perm("jobs.change_job")
    assert user.check_password(NEW_PASSWORD)

    other = NEW_PASSWORD + " staple"
    browser.post(
        f"/admin/auth/user/{user.pk}/password/",
        {"usable_password": "true", "password1": other, "password2": other},
    )
    user.refresh_from_db()
    assert user.check_password(other)


def test_a_group_is_made_and_deleted_from_the_list(browser: Client) -> None:
    browser.post("/admin/auth/group/add/", {"name": "operators"})
    group = Group.objects.get(name="operators")
    browser.post(
        "/admin/auth/group/",
        {"action": "delete_selected", "_selected_action": [group.pk], "post": "yes"},
    )
    assert not Group.objects.exists()
