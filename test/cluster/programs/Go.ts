/** The Go toolchain, which downloads modules at their pinned versions and builds programs from them. */
import { Effect, FileSystem } from "effect"
import { join } from "node:path"
import { run } from "./Run.ts"

/** Where Go's installer puts it, searched after the PATH. */
const installed = "/usr/local/go/bin/go"

/** The command, or `undefined` without Go. */
export const findGo = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const inPath = yield* Effect.isSuccess(run("go", ["version"]))
  if (inPath) return "go"
  return (yield* fs.exists(installed)) ? installed : undefined
})

/** The folder with the files of a module. Go compares them with its checksum database. */
export const downloadModule = Effect.fn("downloadModule")(function*(go: string, module: string, outside: string) {
  const { stdout } = yield* run(go, ["mod", "download", "-json", module], { cwd: outside })
  return (JSON.parse(stdout) as { readonly Dir: string }).Dir
})

/** Builds packages, each into a program in the folder, in one run, which compiles what they share once. */
export const build = Effect.fn("build")(function*(
  go: string,
  module: string,
  packages: ReadonlyArray<string>,
  folder: string
) {
  const flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"]
  const env = { CGO_ENABLED: "0" }
  yield* run(go, ["build", ...flags, "-o", join(folder, "/"), ...packages], { cwd: module, env })
})
