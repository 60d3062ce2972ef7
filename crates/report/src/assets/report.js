// The script of the page of a report.
(() => {
  const { data, number, bytes, one } = page;
  const colour = (i) => `var(--s${i})`;

  // Share of requests that took longer than `ms`, between the points of the distribution.
  const tailAt = ({ ms, tail }, at) => {
    let low = 0, high = ms.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ms[middle] <= at) low = middle + 1; else high = middle;
    }
    return low === 0 ? 1 : tail[low - 1];
  };
  const percentile = (tail) => {
    const digits = tail > 0 ? Math.min(5, Math.max(1, Math.ceil(-Math.log10(tail)))) : 0;
    return (100 * (1 - tail)).toFixed(digits) + " %";
  };
  const readers = {
    latency: (at, section) => ["Within " + number(10 ** at) + " ms", data.runs.map((run, i) => [run, i])
      .filter(([run, i]) => run.latency.ms.length && !page.isHidden(section, i))
      .map(([run, i]) => [run.label, percentile(tailAt(run.latency, 10 ** at)), colour(i)])],
  };
  // What series had at an instant: strips are { name, index, finish_s, series }.
  const overTime = (strips, show) => (at) => ["At " + number(at) + " s", strips.map(({ name, index, finish_s, series }) => {
    const { bucket_s: width, values } = series;
    // The last bucket reaches to the end of the run.
    const value = at <= finish_s ? values[Math.min(Math.floor(at / width), values.length - 1)] : undefined;
    return [name, value === undefined ? "finished" : show(value), colour(index)];
  })];
  const ofRuns = { throughput: (v) => number(v) + " MiB/s", "under-way": number, fill: (v) => (100 * v).toFixed(1) + " %" };
  for (const [key, show] of Object.entries(ofRuns)) {
    const series = (run) => run[key.replace("-", "_")];
    const strips = data.runs.map((run, index) => ({ name: run.label, index, finish_s: run.finish_s, series: series(run) }));
    readers[key] = overTime(strips.filter(({ series }) => series.values.length), show);
  }
  for (const { reader, unit, strips } of data.charts) {
    readers[reader] = overTime(strips, (v) => unit === "bytes" ? bytes(v) : number(v) + (unit === "number" ? "" : " " + unit));
  }
  for (const { reader, unit, axis, values, lines } of data.swept ?? []) {
    readers[reader] = (at) => {
      const i = Math.round(at);
      return [axis + " = " + values[i], lines.filter((line) => line.values[i] !== null)
        .map((line) => [line.name, number(line.values[i]) + (unit ? " " + unit : ""), colour(line.index)])];
    };
  }
  page.readPlots((plot, at) => readers[plot.dataset.reader](at, plot.closest("section")));
  page.paintMaps(data.runs.map((run) => run.heat), (map) => one("select", map).value, {
    axis: "time",
    time: (value) => number(value) + " s",
    some: (blocks) => bytes(blocks * 4096) + " written home",
    none: "Nothing written home",
    most: (blocks) => bytes(blocks * 4096) + " a bin",
  });
  page.ready();
})();
