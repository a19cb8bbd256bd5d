/**
 * Virtual time: runs the events of all simulated machines one after another, in an order that depends on the seed alone.
 *
 * A machine runs the gateway's real code. While one of its events runs, `Interposition.ts` gives it the machine's own clock,
 * timers and sockets; the promises that the event has settled are run to their end before the next event.
 */
import TinyQueue from "tinyqueue"
import { real } from "./Interposition.ts"
import { Random } from "./Random.ts"
import { Trace } from "./Trace.ts"

export interface Event {
  readonly at: number
  readonly order: number
  readonly machine: Machine | undefined
  readonly run: () => void
  isCancelled: boolean
}

/** A simulated machine, with one process of the gateway or one NATS server. */
export class Machine {
  readonly name: string
  /** How far its wall clock is ahead, in milliseconds. */
  skewMs = 0
  /** How far its monotonic clock is ahead, in milliseconds, so that the machines' periodic tasks run at different times. */
  readonly bootedMs: number
  isAlive = true
  /** The events that became due while it is frozen, in order. */
  #held: Array<Event> | undefined
  /** Functions to call when it dies, so that others notice. */
  readonly onDeath: Array<() => void> = []
  /** Called before each of its writes to a socket. */
  onWrite: ((bytes: Uint8Array) => void) | undefined

  constructor(name: string) {
    this.name = name
    this.bootedMs = Buffer.from(name).reduce((sum, byte) => (31 * sum + byte) % 1_000, 0)
  }

  get isFrozen(): boolean {
    return this.#held !== undefined
  }

  /** Like SIGSTOP. */
  freeze(): void {
    this.#held ??= []
  }

  /** Like SIGCONT: runs the events that became due meanwhile, unless an earlier one cancels them. */
  thaw(world: World): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const event of held) {
      world.after(0, this, () => {
        if (!event.isCancelled) event.run()
      })
    }
  }

  hold(event: Event): void {
    this.#held?.push(event)
  }

  /** Like SIGKILL. */
  kill(): void {
    if (!this.isAlive) return
    this.isAlive = false
    this.#held = undefined
    for (const run of this.onDeath) run()
  }
}

/** More events than this at one time mean an endless loop. */
const mostAtOnce = 200_000

/** How many events run before Node's own loop turns. */
const eventsPerTurn = 5_000

/** Runs the reactions of all settled promises. Call it only outside of promises. A turn of Node's loop would do it, too, but costs more. */
const settle = (process as unknown as { readonly _tickCallback: () => void })._tickCallback

export class World {
  readonly random: Random
  readonly trace: Trace
  /** The current time in milliseconds, from 0. */
  now = 0
  /** The machine whose event runs. */
  current: Machine | undefined
  readonly #events = new TinyQueue<Event>([], (a, b) => a.at - b.at || a.order - b.order)
  #order = 0
  /** How many events have run at the current time. */
  #atOnce = 0
  #ids = 0

  constructor(seed: number) {
    this.random = new Random(seed)
    this.trace = new Trace(() => this.now)
  }

  /** Runs `run` after `ms` milliseconds, on a machine unless it is dead by then. */
  after(ms: number, machine: Machine | undefined, run: () => void): Event {
    const event = { at: this.now + Math.max(0, ms), order: this.#order++, machine, run, isCancelled: false }
    this.#events.push(event)
    return event
  }

  /** A new id of 22 characters, like those of `nuid`. */
  id(): string {
    return `id${String(this.#ids++).padStart(20, "0")}`
  }

  /** Runs `run` at once with a machine's clock, from outside of all events. */
  as<A>(machine: Machine, run: () => A): A {
    const { current } = this
    this.current = machine
    try {
      return run()
    } finally {
      this.current = current
    }
  }

  /** Schedules `run` on a machine at the current time, from outside of it. */
  on(machine: Machine, run: () => void): void {
    this.after(0, machine, run)
  }

  /** Runs all events until that time, or until `isDone`. */
  run(until: number, isDone: () => boolean = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = () => {
        try {
          if (this.#runSome(until, isDone)) resolve()
          else real.setImmediate(turn)
        } catch (error) {
          reject(error)
        }
      }
      real.setImmediate(turn)
    })
  }

  /** Runs up to `eventsPerTurn` events. Returns whether the run has ended. */
  #runSome(until: number, isDone: () => boolean): boolean {
    for (let count = 0; count < eventsPerTurn; count++) {
      const event = this.#events.pop()
      if (event === undefined) return true
      if (event.at > until) {
        this.#events.push(event)
        return true
      }
      if (event.isCancelled) continue
      this.#atOnce = event.at > this.now ? 0 : this.#atOnce + 1
      if (this.#atOnce > mostAtOnce) {
        throw new Error(`${event.machine?.name ?? "the world"} runs for ever at ${this.now} ms`)
      }
      this.now = Math.max(this.now, event.at)
      const { machine } = event
      if (machine === undefined) event.run()
      else if (!machine.isAlive) continue
      else if (machine.isFrozen) machine.hold(event)
      else {
        this.current = machine
        event.run()
        settle()
        this.current = undefined
      }
      if (isDone()) return true
    }
    return false
  }
}
