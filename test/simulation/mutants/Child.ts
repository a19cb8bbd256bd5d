/** A child process that simulates seeds with faults in the gateway's code. */
import { type ChildProcess, fork } from "node:child_process"
import { join } from "node:path"
import type { Order, Report } from "./Part.ts"

/** How long a process may take to load the code, in milliseconds. */
const loadMs = 300_000

export class Child {
  readonly #process: ChildProcess
  /** Receives the next message, or `undefined` when the process ends. */
  #take: (message: unknown) => void = () => undefined

  /** The name of a mutant of the past; absent: the code has all mechanical mutants, of which each order chooses one. */
  constructor(mutant?: string) {
    this.#process = fork(join(import.meta.dirname, "Part.ts"), {
      // short-lived objects are most of the work
      execArgv: [...process.execArgv, "--max-semi-space-size=64", "--import", join(import.meta.dirname, "Replace.ts")],
      env: { ...process.env, ...(mutant === undefined ? {} : { MUTANT: mutant }) },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      // what is absent in a scenario stays absent
      serialization: "advanced"
    })
    this.#process.on("message", (message) => this.#take(message))
    this.#process.on("exit", () => this.#take(undefined))
  }

  /** Returns whether the code could be loaded. */
  async load(): Promise<boolean> {
    return await this.#next(loadMs) === "ready"
  }

  /** Returns `undefined` if the process ends, or takes longer than `mostMs`. */
  async simulate(order: Order, mostMs: number): Promise<Report | undefined> {
    this.#process.send(order)
    return await this.#next(mostMs) as Report | undefined
  }

  end(): void {
    this.#process.kill("SIGKILL")
  }

  #next(mostMs: number): Promise<unknown> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, mostMs)
      this.#take = (message) => {
        clearTimeout(timer)
        resolve(message)
      }
    })
  }
}
