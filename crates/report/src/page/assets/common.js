"use strict";
// What the scripts of all pages share. Each page's own script follows and says what it shows.
const page = (() => {
  const root = document.documentElement;
  addEventListener("error", (event) => { root.dataset.error = event.message; });
  const data = JSON.parse(document.getElementById("data").textContent);
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // Three significant digits with thousands separators, as in the tables.
  const number = (value) => {
    const size = Math.abs(value);
    const decimals = size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.09995 ? 3 : 4;
    const [whole, fraction] = value.toFixed(decimals).split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction ? "." + fraction : "");
  };
  const bytes = (value) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit = 0;
    while (value >= 1024 && unit + 1 < units.length) { value /= 1024; unit += 1; }
    return number(value) + " " + units[unit];
  };

  // The read-out follows the pointer; rows are [label, value, colour].
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const showTip = (event, title, rows) => {
    tip.replaceChildren();
    const head = document.createElement("b");
    head.textContent = title;
    tip.append(head);
    for (const [label, value, colour] of rows) {
      const row = document.createElement("div");
      const name = document.createElement("span");
      if (colour) {
        const chip = document.createElement("i");
        chip.className = "chip";
        chip.style.background = colour;
        name.append(chip);
      }
      name.append(label);
      const amount = document.createElement("span");
      amount.textContent = value;
      row.append(name, amount);
      tip.append(row);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = event.clientX + 16 + box.width > innerWidth ? event.clientX - 16 - box.width : event.clientX + 16;
    const y = Math.min(event.clientY + 12, innerHeight - box.height - 8);
    tip.style.left = Math.max(4, x) + "px";
    tip.style.top = Math.max(4, y) + "px";
  };
  const hideTip = () => { tip.hidden = true; };

  // A rule under the pointer, and what `read(plot, at)` says of that place of the axis: a title and rows.
  const readPlots = (read) => {
    for (const plot of all(".plot")) {
      const { left, right, from, to } = plot.dataset;
      const picture = one("svg", plot);
      const rule = document.createElement("div");
      rule.className = "rule";
      rule.hidden = true;
      plot.append(rule);
      plot.addEventListener("pointermove", (event) => {
        const box = picture.getBoundingClientRect();
        const share = ((event.clientX - box.left) / box.width - left) / (right - left);
        if (share < 0 || share > 1) { rule.hidden = true; hideTip(); return; }
        rule.hidden = false;
        // On a narrow screen the picture is wider than its frame and scrolls.
        rule.style.left = event.clientX - box.left + "px";
        rule.style.top = plot.dataset.top * box.height + "px";
        rule.style.height = (plot.dataset.bottom - plot.dataset.top) * box.height + "px";
        showTip(event, ...read(plot, +from + share * (to - from)));
      });
      plot.addEventListener("pointerleave", () => { rule.hidden = true; hideTip(); });
    }
  };

  // A legend entry hides and shows its line; `isHidden(section, index)` says which are hidden.
  const hidden = new WeakMap();
  const isHidden = (section, index) => hidden.get(section)?.has(index) ?? false;
  for (const button of all(".legend button")) {
    button.addEventListener("click", () => {
      const section = button.closest("section"), index = +button.dataset.run;
      if (!hidden.has(section)) hidden.set(section, new Set());
      const set = hidden.get(section);
      if (!set.delete(index)) set.add(index);
      button.setAttribute("aria-pressed", !set.has(index));
      for (const line of all(`[stroke="var(--s${index})"]`, section)) {
        line.style.visibility = set.has(index) ? "hidden" : "";
      }
    });
  }

  // Sorting: numbers by data-value, undefined ones always last.
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table);
    heads.forEach((head, column) => one("button", head).addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const body = one("tbody", table);
      const key = (row) => row.children[column].dataset.value;
      body.append(...all("tr", body).sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = column === 0 ? x.localeCompare(y) : x - y;
        return descending ? -order : order;
      }));
    }));
  }
  for (const button of all("button.export")) {
    button.addEventListener("click", () => {
      const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const table = document.getElementById(button.dataset.table);
      const lines = all("tr", table).map((row) => [...row.children]
        .map((cell) => quote(cell.dataset.value ?? cell.textContent.trim())).join(","));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
      link.download = button.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  // Heat maps. Counts are LEB128 numbers in base64; a zero is followed by how many zeros there are.
  const decode = (text, length) => {
    const raw = atob(text);
    const out = new Uint32Array(length);
    let at = 0, to = 0;
    const next = () => {
      let value = 0, scale = 1, byte;
      do { byte = raw.charCodeAt(at++); value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
      return value;
    };
    while (at < raw.length) {
      const value = next();
      if (value === 0) to += next(); else out[to++] = value;
    }
    return out;
  };
  // Ramps monotone in lightness, readable with any colour vision. On a light page dark
  // means much, on a dark page light does.
  const stops = [[232, 236, 240], [196, 208, 222], [142, 171, 201], [84, 130, 178], [44, 88, 146], [22, 48, 98], [10, 22, 54]];
  const darkStops = [[32, 38, 45], [30, 56, 92], [40, 86, 140], [74, 122, 172], [134, 160, 160], [214, 196, 116], [255, 236, 150]];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const shade = (share) => {
    const ramp = dark.matches ? darkStops : stops;
    const at = Math.min(share, 1) * (ramp.length - 1);
    const i = Math.min(Math.floor(at), ramp.length - 2);
    return ramp[i].map((from, k) => Math.round(from + (ramp[i + 1][k] - from) * (at - i)));
  };
  // `packed`: maps as the page holds them; `chosen(map)`: which of them an element shows; `words`: how
  // counts and instants are said.
  const paintMaps = (packed, chosen, words) => {
    const maps = all(".map");
    const heat = packed.map((h) => h && { ...h, counts: decode(h.counts, h.rows * h.columns) });
    const shown = () => maps.map((map) => heat[chosen(map)]).filter(Boolean);
    const paintAll = () => {
      const showing = shown();
      if (!showing.length) return;
      // One scale for all maps on show, or they could not be compared.
      let most = 1;
      for (const { counts } of showing) for (const count of counts) if (count > most) most = count;
      const end = Math.max(...showing.map((h) => h.end_s));
      const first = Math.min(...showing.map((h) => h.first_block));
      const last = Math.max(...showing.map((h) => h.first_block + h.rows * h.row_blocks));
      // Three decades below the most; what is less still shows.
      const scale = (count) => (count === 0 ? 0 : 0.15 + 0.85 * Math.max(0, 1 + Math.log10(count / most) / 3));
      for (const map of maps) {
        const canvas = one("canvas", map);
        const h = heat[chosen(map)];
        const [width, height] = [canvas.width, canvas.height];
        const image = canvas.getContext("2d").createImageData(width, height);
        const binAt = (x, y) => {
          const time = x * end, block = last - y * (last - first);
          const column = Math.floor(time / h.column_s), row = Math.floor((block - h.first_block) / h.row_blocks);
          return time < h.end_s && row >= 0 && row < h.rows && column < h.columns ? [row, column] : null;
        };
        for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
          const bin = binAt((x + 0.5) / width, (y + 0.5) / height);
          const at = 4 * (y * width + x);
          image.data.set([...shade(bin ? scale(h.counts[bin[0] * h.columns + bin[1]]) : 0), 255], at);
        }
        canvas.getContext("2d").putImageData(image, 0, 0);
        one(".high", map).textContent = bytes(last * 4096);
        one(".low", map).textContent = bytes(first * 4096);
        one(".end", map).textContent = words.time(end);
        canvas.onpointermove = (event) => {
          const box = canvas.getBoundingClientRect();
          const bin = binAt((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
          if (!bin) { hideTip(); return; }
          const [row, column] = bin;
          const start = (h.first_block + row * h.row_blocks) * 4096;
          const count = h.counts[row * h.columns + column];
          showTip(event, count ? words.some(count, map) : words.none, [
            ["address", bytes(start) + " \u2013 " + bytes(start + h.row_blocks * 4096)],
            [words.axis, words.time(column * h.column_s) + " \u2013 " + words.time((column + 1) * h.column_s)],
          ]);
        };
        canvas.onpointerleave = hideTip;
      }
      const ramp = one(".ramp canvas");
      const context = ramp.getContext("2d");
      for (let x = 0; x < ramp.width; x++) {
        context.fillStyle = `rgb(${shade(x / (ramp.width - 1)).join(" ")})`;
        context.fillRect(x, 0, 1, ramp.height);
      }
      one(".ramp .most").textContent = words.most(most);
    };
    for (const select of all(".map select")) select.addEventListener("change", paintAll);
    dark.addEventListener("change", paintAll);
    paintAll();
  };

  return { data, number, bytes, readPlots, isHidden, paintMaps, one, ready: () => { root.dataset.ready = "yes"; } };
})();
