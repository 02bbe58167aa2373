"""Take the picture of the page: ``python docs/figures/app_screenshot.py``.

Writes ``docs/images/app.webp``. Needs ``psal[app]``, Playwright and Chromium.
"""

import subprocess
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

OUT = Path(__file__).parents[1] / "images" / "app.webp"
CHROMIUM = "/usr/bin/chromium"
WIDTH, HEIGHT, PATIENCE = 1180, 760, 120_000  # pixels, milliseconds


def main() -> None:
    """Start the page, mark the sample's object, and take the pictures before and after it is removed."""
    server = subprocess.Popen([sys.executable, "-m", "psal.cli", "app"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=1.5)
            page.set_default_timeout(PATIENCE)
            expect.set_options(timeout=PATIENCE)
            page.goto(address)
            pictures = [mark_sample(page), remove(page)]
            browser.close()
    finally:
        server.terminate()
        server.wait()
    both = Image.new("RGB", (pictures[0].width, sum(picture.height for picture in pictures) + 24), "white")
    both.paste(pictures[0], (0, 0))
    both.paste(pictures[1], (0, pictures[0].height + 24))
    both.save(OUT, quality=88, method=6)


def mark_sample(page: Page) -> Image.Image:
    """Open the sample photograph, whose object is marked."""
    page.locator("#sample").click()
    expect(page.locator("#fill")).to_be_visible()
    return shot(page)


def remove(page: Page) -> Image.Image:
    """Remove the object."""
    page.locator("#fill").click()
    expect(page.locator("#steps li")).to_have_count(3)
    return shot(page)


def shot(page: Page) -> Image.Image:
    """Picture of the page, when everything is drawn."""
    expect(page.locator("body[data-state=ready] #canvas[data-complete*='/']")).to_be_visible()
    page.mouse.move(0, 0)
    return Image.open(BytesIO(page.screenshot())).convert("RGB")


if __name__ == "__main__":
    main()
