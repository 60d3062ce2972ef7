// The script of the page of a workload.
(() => {
  const { data, number, bytes } = page;
  const duration = (seconds) => {
    const units = [[1e-6, "ns", 1e-9], [1e-3, "us", 1e-6], [1, "ms", 1e-3], [120, "s", 1], [7200, "min", 60], [172800, "h", 3600], [Infinity, "days", 86400]];
    const [, unit, size] = seconds === 0 ? [0, "s", 1] : units.find(([below]) => seconds < below);
    return number(seconds / size) + " " + unit;
  };
  const say = {
    count: number,
    bytes,
    seconds: duration,
    percent: (value) => number(value) + " %",
    request_rate: (value) => number(value) + " /s",
    byte_rate: (value) => bytes(value) + "/s",
  };
  // From the place on an axis to the value there.
  const valueAt = {
    linear: (at) => at,
    log: (at) => 10 ** at,
    log_with_zero: (at) => (at < 0.4 ? 0 : Math.floor(10 ** (at - 0.4) * 1.0001)),
  };
  const read = ({ x, y, steps }, at) => {
    const behind = x.findIndex((value) => value > at);
    const i = (behind < 0 ? x.length : behind) - 1;
    if (i < 0) return undefined;
    return steps || i + 1 === x.length ? y[i] : y[i] + (y[i + 1] - y[i]) * (at - x[i]) / (x[i + 1] - x[i]);
  };
  page.readPlots((plot, place) => {
    const chart = data.charts[plot.dataset.reader];
    const at = valueAt[chart.across.scale](place);
    const rows = chart.lines.filter((line) => !page.isHidden(plot.closest("section"), line.colour)).map((line) => {
      const value = read(line, at);
      return [line.name, value === undefined ? "-" : say[chart.up](value), `var(--s${line.colour})`];
    });
    return [say[chart.across.unit](at), rows];
  });
  page.paintMaps(data.heat, (map) => map.dataset.map, {
    axis: "time",
    time: duration,
    some: (blocks, map) => `${bytes(blocks * 4096)} ${map.dataset.done}`,
    none: "Nothing",
    most: (blocks) => bytes(blocks * 4096) + " a bin",
  });
  page.ready();
})();
