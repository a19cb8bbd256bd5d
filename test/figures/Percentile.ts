/** The value below which this share (0 to 1) of the values lies. */
export const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((left, right) => left - right)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
    Number.NaN
