// The geometry of charts: scales, axis labels, the paths of bars, and the interval of a rate. Nothing here draws.

import { scaleLinear } from 'd3-scale';

export interface Series {
  readonly name: string;
  /** One value for each bucket; null where the bucket has no value. */
  readonly values: readonly (number | null)[];
}

export interface Frame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The part of a chart in which its points are drawn. The axis is left of it, the labels are below it. */
export function plotFrame(width: number, height: number): Frame {
  return { left: 52, top: 8, width: width - 60, height: height - 34 };
}

/** Turns the index of a point and its value into pixels. */
export interface Scale {
  readonly frame: Frame;
  /** The number of points. */
  readonly count: number;
  readonly y: (value: number) => number;
  readonly ticks: readonly number[];
  /** The width of a point's band. */
  readonly band: number;
  /** The left edge of a point's band. */
  readonly x: (index: number) => number;
}

export function scaleOf(frame: Frame, count: number, max: number): Scale {
  const y = scaleLinear()
    .domain([0, max > 0 ? max : 1])
    .nice(4)
    .range([frame.top + frame.height, frame.top]);
  const band = count === 0 ? frame.width : frame.width / count;
  return { frame, count, y, ticks: y.ticks(4), band, x: (index) => frame.left + index * band };
}

export function highestStack(series: readonly Series[], count: number): number {
  let highest = 0;
  for (let index = 0; index < count; index++) {
    let sum = 0;
    for (const { values } of series) sum += values[index] ?? 0;
    if (sum > highest) highest = sum;
  }
  return highest;
}

export function highest(series: readonly Series[]): number {
  return series.reduce((most, { values }) => values.reduce<number>((max, value) => Math.max(max, value ?? 0), most), 0);
}

/** One SVG path for each series, so that a thousand bars are one element. */
export function stackedBarPaths(series: readonly Series[], scale: Scale, count: number): string[] {
  const base = new Float64Array(count);
  const gap = scale.band > 6 ? Math.min(4, scale.band * 0.2) : scale.band > 2 ? 0.5 : 0;
  return series.map(({ values }) => {
    let path = '';
    for (let index = 0; index < count; index++) {
      const value = values[index] ?? 0;
      if (value <= 0) continue;
      const from = scale.y(base[index] ?? 0);
      base[index] = (base[index] ?? 0) + value;
      const to = scale.y(base[index] ?? 0);
      const [x, width] = [scale.x(index) + gap / 2, Math.max(0.5, scale.band - gap)];
      path += `M${round(x)} ${round(from)}V${round(to)}h${round(width)}V${round(from)}z`;
    }
    return path;
  });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** The indexes of the labels that fit on an axis. They are evenly spread and include the first. */
export function labelledIndexes(count: number, width: number, labelWidth: number): number[] {
  const fitting = Math.max(1, Math.floor(width / labelWidth));
  const step = Math.max(1, Math.ceil(count / fitting));
  return Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step);
}

/** The 95 % Wilson interval of a share. It is valid for few trials, too; null without any. */
export function wilsonInterval(hits: number, trials: number): readonly [low: number, high: number] | null {
  if (trials === 0) return null;
  const z = 1.96;
  const share = hits / trials;
  const middle = share + (z * z) / (2 * trials);
  const spread = z * Math.sqrt((share * (1 - share)) / trials + (z * z) / (4 * trials * trials));
  const whole = 1 + (z * z) / trials;
  return [Math.max(0, (middle - spread) / whole), Math.min(1, (middle + spread) / whole)];
}
