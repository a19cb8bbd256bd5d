/**
 * The programs of a control plane: those in the folder KUBEBUILDER_ASSETS, or else built once by Go from the module proxy, at
 * the versions that `go/go.mod` pins.
 */
import { Config, Console, Effect, FileSystem } from "effect"
import { join } from "node:path"
import * as Cache from "./Cache.ts"
import { build, findGo } from "./Go.ts"

const packages = {
  "etcd": "go.etcd.io/etcd/server/v3",
  "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
  "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
  "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
  "kubectl": "k8s.io/kubernetes/cmd/kubectl"
}

export type Program = keyof typeof packages

const all = Object.keys(packages) as ReadonlyArray<Program>

/** How Go names what it builds from a package: by the last part of its path that is no version. */
const builtName = (program: Program): string =>
  packages[program].split("/").findLast((part) => !/^v\d+$/.test(part)) ?? ""

const buildAll = Effect.fn("Programs.buildAll")(function*(go: string) {
  yield* Console.log("builds etcd and Kubernetes, once: minutes of CPU time")
  yield* Cache.add(Effect.fnUntraced(function*(folder) {
    const fs = yield* FileSystem.FileSystem
    yield* build(go, Cache.module, Object.values(packages), folder)
    for (const program of all) yield* fs.rename(join(folder, builtName(program)), join(folder, program))
  }))
})

/** The paths of programs. Fails with a `Missing` that says what to do if one is neither there nor can be built. */
export const find = Effect.fn("Programs.find")(function*(programs: ReadonlyArray<Program>) {
  const fs = yield* FileSystem.FileSystem
  const holdsAll = (folder: string) =>
    Effect.forEach(programs, (program) => fs.exists(join(folder, program))).pipe(
      Effect.map((found) => found.every(Boolean))
    )
  const given = yield* Config.String("KUBEBUILDER_ASSETS").pipe(Config.withDefault(""))
  const cache = yield* Cache.folder
  let folder = cache
  if (given !== "" && (yield* holdsAll(given))) folder = given
  else if (!(yield* holdsAll(cache))) {
    const go = yield* findGo
    if (go === undefined) {
      return yield* new Cache.Missing({
        what:
          `This step needs ${
            programs.join(", ")
          }: set KUBEBUILDER_ASSETS to a folder that holds them, or install Go 1.26, ` +
          "which builds them"
      })
    }
    yield* buildAll(go)
  }
  return (program: Program) => join(folder, program)
})
