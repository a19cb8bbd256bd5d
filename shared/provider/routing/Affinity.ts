/**
 * Sends the requests of one session to the same target, whose cache holds their prompt. Rendezvous hashing chooses the target, so that
 * all workers agree without a shared table, and only the sessions of an unavailable target move.
 */
import { hash } from "node:crypto"
import type { Effect } from "effect"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { byWeight, type Candidate } from "./Route.ts"

/** How many times as many calls as the others a target may have and still keep its sessions. */
const maxRatio = 4 / 3

/** A target with fewer running calls is never full, however few the others have. */
const minimumCalls = 8

export class Affinity {
  /** Number of calls of this worker that run or wait for the target's limits, by the candidate's key. */
  readonly #calls = new Map<string, number>()

  /** Counts a call while it runs. */
  during<A, E>({ key }: Candidate, call: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Fiberless.suspend(() => {
      this.#add(key, 1)
      return Fiberless.onExit(call, () => this.#add(key, -1))
    })
  }

  /** The order of a stage's candidates for a session. The first one that is healthy and not too full comes first. */
  inOrder(
    stage: ReadonlyArray<Candidate>,
    session: string,
    isHealthy: (candidate: Candidate) => boolean
  ): ReadonlyArray<Candidate> {
    const ranked = byWeight(stage, ({ key }) => fractionOf(`${session}\0${key}`))
    const healthy = ranked.filter(isHealthy)
    const chosen = healthy.find((candidate) => !this.#isTooFull(candidate, healthy))
    return chosen === undefined || chosen === ranked[0]
      ? ranked
      : [chosen, ...ranked.filter((candidate) => candidate !== chosen)]
  }

  #isTooFull(candidate: Candidate, healthy: ReadonlyArray<Candidate>): boolean {
    const calls = this.#callsOf(candidate)
    if (calls < minimumCalls) return false
    const others = healthy.filter((other) => other !== candidate)
    const sum = (of: (other: Candidate) => number) => others.reduce((total, other) => total + of(other), 0)
    return calls / candidate.weight > maxRatio * sum((other) => this.#callsOf(other)) / sum(({ weight }) => weight)
  }

  #callsOf({ key }: Candidate): number {
    return this.#calls.get(key) ?? 0
  }

  #add(key: string, change: 1 | -1): void {
    const calls = (this.#calls.get(key) ?? 0) + change
    if (calls > 0) this.#calls.set(key, calls)
    else this.#calls.delete(key)
  }
}

/** A hash of a text, from 0 to below 1. */
const fractionOf = (text: string): number => hash("sha256", text, "buffer").readUIntBE(0, 6) / 2 ** 48
