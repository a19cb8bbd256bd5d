/** A number in a bucket to which several processes add. */
import { Effect, Option } from "effect"
import { randomUUID } from "node:crypto"
import { modify, type Revisions } from "../nats/Modify.ts"

/** The count in a stored text. A random id follows it, so that two writers of the same count write different texts. */
export const valueOf = (text: string): number => Number.parseInt(text)

const textOf = (count: number): string => `${count} ${randomUUID()}`

/** Adds to a counter, and returns the new count, which is never below 0. A missing counter is 0. */
export const add = (bucket: Revisions, counter: string, change: number) =>
  modify(bucket, counter, (stored) =>
    Effect.sync(() => {
      const count = Math.max(0, Option.match(stored, { onNone: () => 0, onSome: valueOf }) + change)
      return count === 0 && Option.isNone(stored) ? [count] : [count, textOf(count)]
    }))
