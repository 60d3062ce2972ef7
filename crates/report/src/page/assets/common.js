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
        chip.className = "run k" + Math.floor(+colour.match(/\d+/)[0] / 8);
        chip.style.setProperty("--c", colour);
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
      const { from, to } = plot.dataset;
      const field = one(".field", plot);
      const rule = document.createElement("div");
      rule.className = "rule";
      rule.hidden = true;
      field.append(rule);
      plot.addEventListener("pointermove", (event) => {
        const box = field.getBoundingClientRect();
        const share = (event.clientX - box.left) / box.width;
        if (share < 0 || share > 1) { rule.hidden = true; hideTip(); return; }
        rule.hidden = false;
        rule.style.left = event.clientX - box.left + "px";
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
      for (const line of all(`[stroke="var(--s${index})"], [data-of="var(--s${index})"]`, section)) {
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
  // The ranges of addresses in which some of the maps has something. Small gaps between them stay.
  const RANGES_MAX = 12;
  const touched = (maps) => {
    const used = [];
    for (const { counts, rows, columns, first_block, row_blocks } of maps) {
      for (let row = 0; row < rows; row++) {
        if (counts.subarray(row * columns, (row + 1) * columns).some((count) => count > 0)) {
          used.push([first_block + row * row_blocks, first_block + (row + 1) * row_blocks]);
        }
      }
    }
    if (!used.length) return [{ from: maps[0].first_block, to: maps[0].first_block + maps[0].row_blocks }];
    used.sort((a, b) => a[0] - b[0]);
    const end = Math.max(...used.map((range) => range[1]));
    for (let stays = (end - used[0]?.[0]) / 64; ; stays *= 2) {
      const ranges = [];
      for (const [from, to] of used) {
        const last = ranges.at(-1);
        if (last && from - last.to <= stays) last.to = Math.max(last.to, to); else ranges.push({ from, to });
      }
      if (ranges.length <= RANGES_MAX) return ranges;
    }
  };
  // Each range gets a piece of `height` pixels by its length, the highest addresses at the top.
  const BREAK_PX = 7, PIECE_PX_MIN = 4;
  const laidOut = (ranges, height) => {
    const whole = ranges.reduce((sum, { from, to }) => sum + to - from, 0);
    const rest = height - (ranges.length - 1) * BREAK_PX - ranges.length * PIECE_PX_MIN;
    let bottom = height;
    for (const range of ranges) {
      range.bottom = bottom;
      range.top = bottom - PIECE_PX_MIN - rest * (range.to - range.from) / whole;
      bottom = range.top - BREAK_PX;
    }
    return ranges;
  };
  // The addresses at the ends of the pieces, as far as there is room for them.
  const labelRanges = (axis, ranges) => {
    const LABEL_PX = 13, placed = [];
    const put = (y, block) => {
      if (placed.some((other) => Math.abs(other - y) < LABEL_PX)) return;
      placed.push(y);
      const label = document.createElement("span");
      label.style.top = y + "px";
      label.textContent = bytes(block * 4096);
      axis.append(label);
    };
    axis.replaceChildren();
    put(ranges.at(-1).top + 5, ranges.at(-1).to);
    put(ranges[0].bottom - 5, ranges[0].from);
    for (const { from, bottom } of ranges) put(bottom - 5, from);
    for (const { to, top } of ranges) put(top + 5, to);
  };
  const leftOut = (ranges) => {
    const gaps = ranges.slice(1).map(({ from }, i) => from - ranges[i].to);
    const blocks = gaps.reduce((sum, gap) => sum + gap, 0);
    const many = gaps.length === 1 ? "a range of " : gaps.length + " ranges, together ";
    return gaps.length ? "Left out of the axis, at the breaks: " + many + bytes(blocks * 4096) + ", in which there is nothing." : "";
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
      const ranges = laidOut(touched(showing), one("canvas", maps[0]).height);
      // Three decades below the most; what is less still shows.
      const scale = (count) => (count === 0 ? 0 : 0.15 + 0.85 * Math.max(0, 1 + Math.log10(count / most) / 3));
      for (const map of maps) {
        const canvas = one("canvas", map);
        const h = heat[chosen(map)];
        const [width, height] = [canvas.width, canvas.height];
        const image = canvas.getContext("2d").createImageData(width, height);
        // Nothing in a break; else the row and the column, or that it is outside.
        const binAt = (x, y) => {
          const range = ranges.find(({ top, bottom }) => y * height >= top && y * height < bottom);
          if (!range) return undefined;
          const time = x * end, share = (range.bottom - y * height) / (range.bottom - range.top);
          const block = range.from + share * (range.to - range.from);
          const column = Math.floor(time / h.column_s), row = Math.floor((block - h.first_block) / h.row_blocks);
          return time < h.end_s && row >= 0 && row < h.rows && column < h.columns ? [row, column] : null;
        };
        for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
          const bin = binAt((x + 0.5) / width, (y + 0.5) / height);
          const at = 4 * (y * width + x);
          const colour = shade(bin ? scale(h.counts[bin[0] * h.columns + bin[1]]) : 0);
          image.data.set([...colour, bin === undefined ? 0 : 255], at);
        }
        canvas.getContext("2d").putImageData(image, 0, 0);
        labelRanges(one(".y", map), ranges);
        one(".note", map).textContent = leftOut(ranges);
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
