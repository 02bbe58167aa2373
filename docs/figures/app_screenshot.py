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
WIDTH, PATIENCE = 900, 120_000  # pixels, milliseconds


def main() -> None:
    """Start the page, fill the sample and take the picture."""
    server = subprocess.Popen([sys.executable, "-m", "psal.cli", "app"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, device_scale_factor=1.5)
            page.set_default_timeout(PATIENCE)
            expect.set_options(timeout=PATIENCE)
            page.goto(address)
            fill_sample(page)
            picture = Image.open(BytesIO(page.screenshot(full_page=True)))
            browser.close()
    finally:
        server.terminate()
        server.wait()
    picture.convert("RGB").save(OUT, quality=85, method=6)


def fill_sample(page: Page) -> None:
    """Fill the sample photograph and wait until the result is shown."""
    page.locator("#inpaint-sample").click()
    expect(page.locator("#inpaint-painter .painter-canvas")).to_be_visible()
    expect(page.locator("#inpaint-mask .picker-image")).to_be_visible()
    page.wait_for_timeout(1000)  # the painter draws the mask after it has loaded
    page.locator("#inpaint-run").click()
    expect(page.locator("#inpaint-slider img").first).to_be_visible()
    page.mouse.move(0, 0)
    page.wait_for_timeout(1000)  # animations of the slider and the message


if __name__ == "__main__":
    main()
