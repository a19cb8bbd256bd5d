/**
 * The programs of a control plane: those in the folder KUBEBUILDER_ASSETS, or else built once by Go from the module proxy, at
 * the versions that `go/go.mod` and `Cache.ts` pin.
 */
import { Config, Console, Effect, FileSystem } from "effect"
import { join } from "node:path"
import * as Cache from "./Cache.ts"
import { build, downloadModule, findGo } from "./Go.ts"

/** Programs of one module, which Go builds together. */
const modules = [
  {
    name: "etcd and Kubernetes",
    packages: {
      "etcd": "go.etcd.io/etcd/server/v3",
      "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
      "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
      "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
      "kubectl": "k8s.io/kubernetes/cmd/kubectl"
    },
    folder: () => Effect.succeed(Cache.module)
  },
  {
    name: "KEDA",
    packages: { "keda-operator": "./cmd/operator", "keda-adapter": "./cmd/adapter" },
    folder: (go: string, scratch: string) => downloadModule(go, Cache.kedaModule, scratch)
  }
] as const

type Module = typeof modules[number]

type NamesIn<M> = M extends { readonly packages: infer Packages } ? keyof Packages : never

export type Program = NamesIn<Module>

/** How Go names what it builds from a package: by the last part of its path that is no version. */
const builtName = (path: string): string => path.split("/").findLast((part) => !/^v\d+$/.test(part)) ?? ""

const buildModule = Effect.fn("Programs.buildModule")(function*(go: string, { folder, name, packages }: Module) {
  yield* Console.log(`builds ${name}, once: minutes of CPU time`)
  yield* Cache.add(Effect.fnUntraced(function*(made) {
    const fs = yield* FileSystem.FileSystem
    yield* build(go, yield* folder(go, made), Object.values(packages), made)
    for (const [program, path] of Object.entries(packages)) {
      yield* fs.rename(join(made, builtName(path)), join(made, program))
    }
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
    for (const module of modules) {
      if (programs.some((program) => Object.hasOwn(module.packages, program))) yield* buildModule(go, module)
    }
  }
  return (program: Program) => join(folder, program)
})
