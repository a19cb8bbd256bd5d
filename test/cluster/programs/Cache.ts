/** What is built or downloaded once: kept outside the repository, by the versions of Kubernetes and KEDA. */
import { Config, Effect, FileSystem, Schema } from "effect"
import { homedir } from "node:os"
import { basename, dirname, join } from "node:path"

/** The module that pins the versions of the programs. */
export const module = join(dirname(import.meta.dirname), "go")

/** KEDA, with the version that the guide names or a newer one. */
export const kedaModule = "github.com/kedacore/keda/v2@v2.21.0"

/** A program or file is missing and cannot be made here. */
export class Missing extends Schema.TaggedError<Missing>()("Missing", { what: Schema.String }) {
  override get message() {
    return this.what
  }
}

/** The version of Kubernetes, such as `v1.36.3`. */
export const version = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs.readFileString(join(module, "go.mod"))
  const [, version] = /^\tk8s\.io\/kubernetes (v\S+)/m.exec(text) ?? []
  if (version === undefined) return yield* new Missing({ what: "go.mod names no version of k8s.io/kubernetes" })
  return version
})

/** The folder, which exists. */
export const folder = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const caches = yield* Config.String("XDG_CACHE_HOME").pipe(Config.withDefault(join(homedir(), ".cache")))
  const [, keda = ""] = kedaModule.split("@")
  const path = join(caches, "model-gateway/cluster", `${yield* version}-keda-${keda}`)
  yield* fs.makeDirectory(path, { recursive: true })
  return path
})

/**
 * Adds the files that `make` writes into a folder beside the cache, once all of them are complete: a run that is interrupted
 * leaves none.
 */
export const add = Effect.fn("Cache.add")(function*<E, R>(make: (folder: string) => Effect.Effect<void, E, R>) {
  const fs = yield* FileSystem.FileSystem
  const cache = yield* folder
  const made = yield* fs.makeTempDirectoryScoped({ directory: dirname(cache), prefix: `${basename(cache)}-` })
  yield* make(made)
  for (const name of yield* fs.readDirectory(made)) yield* fs.rename(join(made, name), join(cache, name))
}, Effect.scoped)
