/** A line of `npm run figures`: a figure, its value and target, whether it is met, and NATS's own value where NATS takes part. */
export type Row = readonly [name: string, measured: string, target: string, holds: boolean, nats?: string | undefined]

export const ms = (value: number): string => `${value.toFixed(0)} ms`
export const count = (value: number): string => `${value}`

/** A figure with an upper limit. */
export const atMost = (name: string, value: number, most: number, show = ms, nats?: string): Row => [
  name,
  show(value),
  `≤ ${show(most)}`,
  value <= most,
  nats
]
