/** Peers for comparison: other gateways, installed into the run's folder. None is a dependency of this project. */
import { type Duration, Effect, Schema } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

/** A peer cannot be installed or started, for instance without a network. */
export class PeerMissing
  extends Schema.TaggedError<PeerMissing>()("PeerMissing", { peer: Schema.String, reason: Schema.String })
{
  override get message() {
    return `${this.peer} could not be started: ${this.reason}`
  }
}

/** Runs one command of an installation. */
export const install = Effect.fn("Peer.install")(function*(
  peer: string,
  words: readonly [command: string, ...args: ReadonlyArray<string>],
  within: Duration.Input
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const [command, ...args] = words
  const child = ChildProcess.make(command, args, { stdin: "ignore", stdout: "ignore", stderr: "ignore" })
  const code = yield* spawner.exitCode(child).pipe(
    Effect.timeout(within),
    Effect.mapError(({ message }) => new PeerMissing({ peer, reason: message }))
  )
  if (code !== 0) return yield* new PeerMissing({ peer, reason: `${command} ${args[0]} exited with ${code}` })
})
