(/* What the tests ask of a page: one expression, whose value is an object of functions. */ () => {
  const swatch = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colours = new Map();

  // Any CSS colour as [r, g, b, a], each from 0 to 1.
  const rgba = (colour) => {
    if (!colours.has(colour)) {
      swatch.clearRect(0, 0, 1, 1);
      swatch.fillStyle = "#000";
      swatch.fillStyle = colour;
      swatch.fillRect(0, 0, 1, 1);
      colours.set(colour, [...swatch.getImageData(0, 0, 1, 1).data].map((part) => part / 255));
    }
    return colours.get(colour);
  };
  const over = (top, below, strength = 1) =>
    [0, 1, 2].map((i) => top[i] * (top[3] ?? 1) * strength
      + below[i] * (1 - (top[3] ?? 1) * strength));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) =>
      part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const hex = (colour) =>
    "#" + colour.slice(0, 3).map((p) => Math.round(p * 255).toString(16).padStart(2, "0")).join("");

  // The colours of a text and of the ground below it as they are seen: grounds of all ancestors
  // laid over each other, each with its opacity.
  const seen = (element, ink = getComputedStyle(element).color) => {
    const chain = [];
    for (let node = element; node; node = node.parentElement) chain.unshift(node);
    const paint = (place, below) => {
      const style = getComputedStyle(chain[place]);
      const ground = over(rgba(style.backgroundColor), below);
      const last = place === chain.length - 1;
      const [text, base] = last ? [over(rgba(ink), ground), ground] : paint(place + 1, ground);
      const strength = Number(style.opacity);
      return [over(text, below, strength), over(base, below, strength)];
    };
    const canvas = document.createElement("div");
    canvas.style.cssText = "position:absolute;background:Canvas";
    document.body.append(canvas);
    const bare = rgba(getComputedStyle(canvas).backgroundColor);
    canvas.remove();
    return paint(0, bare);
  };

  const texts = function* (root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const element = node.parentElement;
      if (!node.data.trim() || element.closest("style, script, svg")) continue;
      if (!element.checkVisibility()) continue; // in a closed <details>
      yield [node, element];
    }
  };
  // A glyph, which a word follows; what hides it from screen readers does not survive everywhere.
  const isSign = (node) => !/[\p{L}\p{N}]/u.test(node.data);
  const boxOf = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getBoundingClientRect();
  };
  const clipped = (style) => /auto|scroll|hidden|clip/.test(style.overflowX);

  const api = {
    // What can be read without opening anything, as one line.
    words: (root) => root.innerText.replace(/\s+/g, " ").trim(),

    // Texts that are hard to read: their contrast is below 4.5, or below 3 for signs beside a word.
    faint: (root) => {
      const found = [];
      for (const [node, element] of texts(root)) {
        const [ink, ground] = seen(element);
        const ratio = contrast(ink, ground);
        const least = isSign(node) ? 3 : 4.5;
        if (ratio < least) {
          found.push(`${ratio.toFixed(2)} ${hex(ink)} on ${hex(ground)}: ${node.data.trim()}`);
        }
      }
      return found;
    },

    // Texts that are there and cannot be seen, since they have no extent or are cut away.
    lost: (root) => [...texts(root)].filter(([node, element]) => {
      const box = boxOf(node);
      if (box.width < 1 || box.height < 1) return true;
      for (let outer = element; outer !== root && outer; outer = outer.parentElement) {
        const style = getComputedStyle(outer);
        if (!/hidden|clip/.test(style.overflow) || style.display === "inline") continue;
        const rect = outer.getBoundingClientRect();
        if (box.right > rect.right + 1 || box.bottom > rect.bottom + 1) return true;
      }
      return false;
    }).map(([node]) => node.data.trim()),

    // Texts smaller than 12 px that are more than a sign.
    small: (root) => [...texts(root)].filter(([node, element]) =>
      !isSign(node) && parseFloat(getComputedStyle(element).fontSize) < 12)
      .map(([node, element]) => `${getComputedStyle(element).fontSize}: ${node.data.trim()}`),

    // Elements that stick out of a root on its right, but for those in a box that scrolls.
    wide: (root) => {
      const edge = root.getBoundingClientRect().right;
      return [...root.querySelectorAll("*")].filter((element) => {
        if (element.closest("svg") || !element.checkVisibility()) return false;
        if (element.getBoundingClientRect().right <= edge + 1) return false;
        for (let outer = element.parentElement; outer !== root; outer = outer.parentElement) {
          if (clipped(getComputedStyle(outer))) return false;
        }
        return true;
      }).map((element) => `${element.tagName} ${element.innerText ?? ""}`.slice(0, 80));
    },
    pageScrolls: () => {
      const page = document.scrollingElement;
      return page.scrollWidth - page.clientWidth;
    },

    // Pictures that are not drawn, or that say nothing to who cannot see them.
    missing: (root) => [...root.querySelectorAll("img")]
      .filter((img) => !img.complete || !img.naturalWidth || !img.naturalHeight || !img.alt)
      .map((img) => img.alt || "no alt"),

    // All that is wrong, by its kind.
    flaws: (root) => Object.fromEntries(["faint", "lost", "small", "wide", "missing"]
      .map((kind) => [kind, api[kind](root)])
      .filter(([, found]) => found.length)),

    // The same for a picture that stands in the page as an <svg>: each text against what is drawn
    // below its middle.
    faintInPicture: (svg) => {
      const found = [];
      let asked = 0;
      for (const text of svg.querySelectorAll("text")) {
        if (!text.textContent.trim()) continue;
        asked += 1;
        text.scrollIntoView({ block: "center", inline: "center" });
        const box = text.getBoundingClientRect();
        const ink = rgba(getComputedStyle(text).fill);
        const [, bare] = seen(svg.parentElement);
        const below = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2)
          .filter((element) => svg.contains(element) && /^(path|polygon|ellipse)$/.test(element.tagName))
          .map((element) => getComputedStyle(element).fill)
          .filter((fill) => fill !== "none")
          .reverse();
        const ground = below.reduce((under, fill) => over(rgba(fill), under), bare);
        const ratio = contrast(over(ink, ground), ground);
        if (ratio < 4.5) {
          found.push(`${ratio.toFixed(2)} ${hex(ink)} on ${hex(ground)}: ${text.textContent}`);
        }
      }
      return { asked, found };
    },

    // How many of a screenshot's pixels are nearly white, and how many nearly black.
    shares: async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      const sheet = new OffscreenCanvas(image.width, image.height).getContext("2d");
      sheet.drawImage(image, 0, 0);
      const { data } = sheet.getImageData(0, 0, image.width, image.height);
      let [white, black] = [0, 0];
      for (let i = 0; i < data.length; i += 4) {
        const lowest = Math.min(data[i], data[i + 1], data[i + 2]);
        const highest = Math.max(data[i], data[i + 1], data[i + 2]);
        white += lowest > 235;
        black += highest < 60;
      }
      const all = image.width * image.height;
      return { white: white / all, black: black / all };
    },
  };
  return api;
})()
