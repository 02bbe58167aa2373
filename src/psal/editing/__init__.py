"""The edits of photographs: a registry, one file per edit, and their steps."""

from psal.waiting import let_threads_sleep

let_threads_sleep()
