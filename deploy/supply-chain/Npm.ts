/** Runs npm in the project's folder. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, Schema } from "effect"

export const project = join(import.meta.dirname, "../..")

export class NpmFailed extends Schema.TaggedError<NpmFailed>()("NpmFailed", {
  command: Schema.String,
  cause: Schema.Defect()
}) {
  override get message() {
    return `\`${this.command}\` failed: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}`
  }
}

/** Runs npm and returns its output. Fails after a minute. */
export const npm = Effect.fn("npm")(function*(...words: ReadonlyArray<string>) {
  const options = { cwd: project, maxBuffer: 64 * 1024 * 1024, timeout: 60_000 }
  const { stdout } = yield* Effect.tryPromise({
    try: () => promisify(execFile)("npm", words, options),
    catch: (cause) => new NpmFailed({ command: `npm ${words.join(" ")}`, cause })
  })
  return stdout
})
