/** Pauses between events. All times are milliseconds of `performance.now()`. */

export interface Span {
  readonly from: number
  readonly until: number
}

export const lengthOf = ({ from, until }: Span): number => until - from

/** The longest of these spans in milliseconds, 0 if there is none. */
export const longest = (spans: ReadonlyArray<Span>): number => Math.max(0, ...spans.map(lengthOf))

/** The spans longer than `leastMs` without an event, within `during`. The times of events may be in any order. */
export const pauses = (events: ReadonlyArray<number>, during: Span, leastMs: number): ReadonlyArray<Span> => {
  const within = events.filter((at) => at > during.from && at < during.until).toSorted((left, right) => left - right)
  return [...within, during.until]
    .map((until, index) => ({ from: within[index - 1] ?? during.from, until }))
    .filter((span) => lengthOf(span) > leastMs)
}

/** The times that are in at least one of these spans, as spans that do not overlap. */
export const union = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> =>
  spans.toSorted((left, right) => left.from - right.from).reduce<ReadonlyArray<Span>>((merged, span) => {
    const last = merged.at(-1)
    if (last === undefined || last.until < span.from) return [...merged, span]
    return [...merged.slice(0, -1), { from: last.from, until: Math.max(last.until, span.until) }]
  }, [])

/** How much of a span lies outside others that do not overlap each other, in milliseconds. */
export const outside = (span: Span, others: ReadonlyArray<Span>): number =>
  others.reduce(
    (left, { from, until }) => left - Math.max(0, Math.min(until, span.until) - Math.max(from, span.from)),
    lengthOf(span)
  )
