/** Runs the commands of the guide in `deploy/README.md` as they are written, in a shell. */
import { Effect, FileSystem, Schema } from "effect"
import { dirname, join } from "node:path"
import { environment } from "../control-plane/Kubectl.ts"
import * as Programs from "../programs/Programs.ts"
import { run } from "../programs/Run.ts"

const project = join(import.meta.dirname, "../../..")

class NoGuide extends Schema.TaggedError<NoGuide>()("NoGuide", {}) {
  override get message() {
    return "deploy/README.md has no block of commands that creates the namespace nats"
  }
}

/** The first block of commands that creates NATS's namespace. */
export const commands = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs.readFileString(join(project, "deploy/README.md"))
  const block = [...text.matchAll(/```sh\n([^]*?)```/g)].find(([, block]) => block?.includes("create namespace nats"))
  return block?.[1] ?? (yield* new NoGuide())
})

/** What the guide uses of the repository. */
const parts = ["deploy", "services", "shared", "node_modules", "package.json", "package-lock.json"]

/**
 * Runs the commands in a folder like the repository, and returns how many there were. Only `helm` is replaced: its `install`
 * applies this manifest instead of NATS's chart, which is in no package registry.
 */
export const follow = Effect.fn("Guide.follow")(function*(chart: object) {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "guide-" })
  for (const part of parts) yield* fs.symlink(join(project, part), join(folder, part))
  const bin = join(folder, "bin")
  yield* fs.makeDirectory(bin)
  const program = yield* Programs.find(["kubectl"])
  yield* fs.symlink(program("kubectl"), join(bin, "kubectl"))
  yield* fs.writeFileString(join(folder, "chart.json"), JSON.stringify(chart))
  const helm = `#!/bin/sh\n[ "$1" = install ] || exit 0\nexec kubectl apply -f ${join(folder, "chart.json")}\n`
  yield* fs.writeFileString(join(bin, "helm"), helm, { mode: 0o755 })
  const script = yield* commands
  const path = [bin, dirname(process.execPath), process.env["PATH"]].join(":")
  const env = { ...(yield* environment), PATH: path }
  yield* run("bash", ["-euo", "pipefail", "-c", script], { cwd: folder, env }).pipe(Effect.timeout("10 minutes"))
  return script.split("\n").filter((line) => /^[a-z]/.test(line)).length
}, Effect.scoped)
