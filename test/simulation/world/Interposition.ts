/**
 * Puts the simulated world under the gateway's real code: while an event of a machine runs, Node's timers, clocks, random
 * numbers and sockets are the world's. Import this before any code of the gateway.
 */
import { nuid } from "@nats-io/nats-core"
import net from "node:net"
import { performance } from "node:perf_hooks"
import type { Event, Machine, World } from "./World.ts"

/** Connects a machine to a port of the simulated network. */
export type Dial = (machine: Machine, port: number, onConnect: () => void) => unknown

let world: World | undefined
let dial: Dial | undefined

/** Makes this the world of all machines. */
export const enter = (next: World, connect: Dial): void => {
  world = next
  dial = connect
}

/** The time of every world's beginning, in epoch milliseconds. */
export const epochMs = Date.UTC(2026, 0, 1, 12)

class Timer {
  event: Event
  constructor(event: Event) {
    this.event = event
  }
  unref(): this {
    return this
  }
  ref(): this {
    return this
  }
  hasRef(): boolean {
    return true
  }
}

const clear = (real: (handle: never) => void) => (handle: unknown): void => {
  if (handle instanceof Timer) handle.event.isCancelled = true
  else real(handle as never)
}

type Callback = (...args: ReadonlyArray<unknown>) => void

/** Node's own. */
export const real = {
  setTimeout: globalThis.setTimeout,
  setInterval: globalThis.setInterval,
  setImmediate: globalThis.setImmediate,
  clearTimeout: globalThis.clearTimeout,
  clearInterval: globalThis.clearInterval,
  clearImmediate: globalThis.clearImmediate,
  dateNow: Date.now,
  performanceNow: performance.now.bind(performance),
  hrtime: process.hrtime.bigint,
  random: Math.random,
  createConnection: net.createConnection,
  nuid: nuid.next.bind(nuid)
}

const here = (): { readonly world: World; readonly machine: Machine } | undefined =>
  world?.current === undefined ? undefined : { world, machine: world.current }

/** Node's timers have a resolution of a millisecond. */
const delayOf = (ms: number | undefined): number => Math.max(1, Math.floor(ms ?? 0) || 0)

Object.assign(globalThis, {
  setTimeout: (run: Callback, ms?: number, ...args: ReadonlyArray<unknown>) => {
    const at = here()
    if (at === undefined) return real.setTimeout(run, ms, ...args)
    return new Timer(at.world.after(delayOf(ms), at.machine, () => run(...args)))
  },
  setInterval: (run: Callback, ms?: number, ...args: ReadonlyArray<unknown>) => {
    const at = here()
    if (at === undefined) return real.setInterval(run, ms, ...args)
    const again = () => {
      timer.event = at.world.after(delayOf(ms), at.machine, again)
      run(...args)
    }
    const timer: Timer = new Timer(at.world.after(delayOf(ms), at.machine, again))
    return timer
  },
  setImmediate: (run: Callback, ...args: ReadonlyArray<unknown>) => {
    const at = here()
    if (at === undefined) return real.setImmediate(run, ...args)
    return new Timer(at.world.after(0, at.machine, () => run(...args)))
  },
  clearTimeout: clear(real.clearTimeout),
  clearInterval: clear(real.clearInterval),
  clearImmediate: clear(real.clearImmediate)
})

/** The wall clock of the machine whose event runs, in epoch milliseconds. */
// @effect-diagnostics-next-line globalDate:off -- what Date.now is to become
export const wallMs = (): number => Date.now()

Date.now = () => {
  const at = here()
  return at === undefined ? real.dateNow() : Math.floor(epochMs + at.world.now + at.machine.skewMs)
}
performance.now = () => here()?.world.now ?? real.performanceNow()
process.hrtime.bigint = () => {
  const at = here()
  return at === undefined ? real.hrtime() : BigInt(Math.round(at.world.now * 1_000_000))
}
Math.random = () => here()?.world.random.next() ?? real.random()
nuid.next = () => here()?.world.id() ?? real.nuid()

net.createConnection = ((port: number, host: string, onConnect: () => void) => {
  const at = here()
  return at === undefined || dial === undefined
    ? real.createConnection(port, host, onConnect)
    : dial(at.machine, port, onConnect)
}) as typeof net.createConnection
