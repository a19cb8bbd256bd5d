/**
 * Puts the simulated world under the gateway's real code: while an event of a machine runs, Node's timers, clocks, random
 * numbers and sockets are the world's. Import this before any code of the gateway.
 */
import { nuid } from "@nats-io/nats-core"
import crypto from "node:crypto"
import { createRequire, syncBuiltinESMExports } from "node:module"
import net from "node:net"
import { performance } from "node:perf_hooks"
import { StreamSocket, type Wire } from "./StreamSocket.ts"
import type { Event, Machine, World } from "./World.ts"

/** Connects a machine to a port of the simulated network. */
export type Dial = (machine: Machine, port: number, onConnect: () => void) => Wire

let world: World | undefined
let dial: Dial | undefined

/** Makes `next` the world of all machines. */
export const enter = (next: World, connect: Dial): void => {
  world = next
  dial = connect
}

/** The time of every world's beginning, in epoch milliseconds. */
export const epochMs = Date.UTC(2026, 0, 1, 12)

class Timer {
  readonly #again: () => Event
  event: Event
  constructor(again: () => Event) {
    this.#again = again
    this.event = again()
  }
  refresh(): this {
    this.event.isCancelled = true
    this.event = this.#again()
    return this
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

/** Node's own functions, before they are replaced. */
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
  connect: net.connect,
  randomUUID: crypto.randomUUID,
  randomInt: crypto.randomInt,
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
    return new Timer(() => at.world.after(delayOf(ms), at.machine, () => run(...args)))
  },
  setInterval: (run: Callback, ms?: number, ...args: ReadonlyArray<unknown>) => {
    const at = here()
    if (at === undefined) return real.setInterval(run, ms, ...args)
    const again = () => {
      timer.event = at.world.after(delayOf(ms), at.machine, again)
      run(...args)
    }
    const timer: Timer = new Timer(() => at.world.after(delayOf(ms), at.machine, again))
    return timer
  },
  setImmediate: (run: Callback, ...args: ReadonlyArray<unknown>) => {
    const at = here()
    if (at === undefined) return real.setImmediate(run, ...args)
    return new Timer(() => at.world.after(0, at.machine, () => run(...args)))
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
  return at === undefined ? real.hrtime() : BigInt(Math.round((at.world.now + at.machine.bootedMs) * 1_000_000))
}
Math.random = () => here()?.world.random.next() ?? real.random()
crypto.randomUUID = ((options?: crypto.RandomUUIDOptions) => {
  const random = here()?.world.random
  if (random === undefined) return real.randomUUID(options)
  const digits = Array.from({ length: 32 }, () => random.integer(0, 15).toString(16)).join("")
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
}) as typeof crypto.randomUUID
// only the form that the gateway uses: at least 0, and less than a bound
crypto.randomInt =
  ((below: number) => here()?.world.random.integer(0, below - 1) ?? real.randomInt(below)) as typeof crypto.randomInt
syncBuiltinESMExports()
nuid.next = () => here()?.world.id() ?? real.nuid()

net.createConnection = ((port: number, host: string, onConnect: () => void) => {
  const at = here()
  return at === undefined || dial === undefined
    ? real.createConnection(port, host, onConnect)
    : dial(at.machine, port, onConnect)
}) as typeof net.createConnection

/** The form in which undici connects. */
net.connect = ((options: { readonly port: number | string }) => {
  const at = here()
  const connect = dial
  if (at === undefined || connect === undefined) return real.connect(options as net.NetConnectOpts)
  return new StreamSocket((onConnect) => connect(at.machine, Number(options.port), onConnect))
}) as typeof net.connect

// undici's timers share one tick, which would stop with the machine that started it
const timers = createRequire(import.meta.url)("undici/lib/util/timers.js") as Record<string, unknown>
for (const name of ["setTimeout", "setFastTimeout"]) {
  timers[name] = (run: Callback, ms: number, ...args: ReadonlyArray<unknown>) => setTimeout(run, ms, ...args)
}
for (const name of ["clearTimeout", "clearFastTimeout"]) timers[name] = (timer: never) => clearTimeout(timer)
