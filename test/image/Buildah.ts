/**
 * Builds and runs images without a registry or daemon, with `buildah` as root, for `npm run image`.
 *
 * The base is Debian from `debootstrap` with the project's Node and npm. It replaces the official Node image, and is like it
 * in all that matters here.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"

const project = join(import.meta.dirname, "../..")
const baseImage = "localhost/model-gateway-test-base:24"

/** The targets of the Dockerfile. */
export const targets = ["core", "media"] as const
export type Target = typeof targets[number]

const run = async (command: string, ...args: ReadonlyArray<string>): Promise<string> => {
  const { stdout } = await promisify(execFile)(command, args, { cwd: project, maxBuffer: 64 * 1024 * 1024 })
  return stdout.trim()
}
export const buildah = (...args: ReadonlyArray<string>): Promise<string> => run("buildah", ...args)

export const inTemporaryFolder = async (use: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "image-"))
  try {
    await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const exists = (image: string): Promise<boolean> =>
  buildah("inspect", "--type", "image", image).then(() => true, () => false)

/** Makes the base image in a minute and a half, unless it exists. */
export const ensureBase = async (): Promise<void> => {
  if (await exists(baseImage)) return
  await inTemporaryFolder(async (folder) => {
    const root = join(folder, "root")
    await run("debootstrap", "--variant=minbase", "bookworm", root)
    cpSync(process.execPath, join(root, "usr/local/bin/node"))
    const npm = realpathSync(await run("sh", "-c", "command -v npm"))
    cpSync(dirname(dirname(npm)), join(root, "usr/local/lib/node_modules/npm"), { recursive: true })
    symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm"))
    const container = await buildah("from", "scratch")
    await buildah("copy", "--quiet", container, root, "/")
    await buildah("config", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container)
    await buildah("commit", "--quiet", container, baseImage)
    await buildah("rm", container)
  })
}

/** Calls with options that let a build use that base, without a registry and with the npm registry's proxy, if there is one. */
const withBase = (use: (options: ReadonlyArray<string>) => Promise<void>): Promise<void> =>
  inTemporaryFolder(async (folder) => {
    // npm in the build must know the authority of a proxy
    const authority = process.env["NODE_EXTRA_CA_CERTS"]
    const settings = join(folder, "npmrc")
    writeFileSync(settings, authority === undefined ? "" : "cafile=/run/authority.pem\n")
    await use([
      ...["--volume", `${settings}:/root/.npmrc:ro`],
      ...(authority === undefined ? [] : ["--volume", `${authority}:/run/authority.pem:ro`]),
      ...["--pull-never", "--isolation", "chroot", "--build-arg", `NODE_IMAGE=${baseImage}`]
    ])
  })

/** Builds a target of the project's Dockerfile on that base, as Docker does; returns the image's name. */
export const build = async (target: Target): Promise<string> => {
  const image = `localhost/model-gateway-test-${target}`
  const what = [
    "--layers",
    "--format",
    "docker",
    "--file",
    "deploy/Dockerfile",
    "--target",
    target,
    "--tag",
    image,
    "."
  ]
  await withBase(async (options) => void await buildah("build", ...options, ...what))
  return image
}

/** Builds a target of another working tree reproducibly; returns the digest under which a registry would have it. */
export const digestOf = async (tree: string, target: Target): Promise<string> => {
  const image = "localhost/model-gateway-test-reproducible"
  let digest = ""
  await withBase(async (options) => {
    await run(join(tree, "deploy/image/build.sh"), target, image, ...options)
    await inTemporaryFolder(async (folder) => {
      await buildah("push", "--quiet", "--digestfile", join(folder, "digest"), image, `dir:${join(folder, "image")}`)
      digest = readFileSync(join(folder, "digest"), "utf8")
    })
    await buildah("rmi", image)
  })
  return digest
}

/** The part of an image's configuration that these tests use. */
export interface ImageConfig {
  readonly User: string
  readonly Env: ReadonlyArray<string>
  readonly Entrypoint: ReadonlyArray<string>
  readonly WorkingDir: string
  readonly Labels: Readonly<Record<string, string>>
  readonly Healthcheck?: { readonly Test: ReadonlyArray<string> }
}

/** A container that does not run yet, with its file system mounted. */
export class Container {
  readonly #id: string
  readonly root: string
  readonly config: ImageConfig

  static async from(image: string): Promise<Container> {
    const id = await buildah("from", "--pull-never", image)
    const inspected = JSON.parse(await buildah("inspect", id)) as { readonly Docker: { readonly config: ImageConfig } }
    return new Container(id, await buildah("mount", id), inspected.Docker.config)
  }

  private constructor(id: string, root: string, config: ImageConfig) {
    this.#id = id
    this.root = root
    this.config = config
  }

  async remove(): Promise<void> {
    await buildah("rm", this.#id)
  }

  /** Runs the image's entry point with these arguments, as its user, on a read-only root, in this network. */
  start(
    words: ReadonlyArray<string>,
    environment: Readonly<Record<string, string>>,
    catalogue: string
  ): ChildProcess {
    return this.exec([...this.config.Entrypoint, ...words], environment, catalogue)
  }

  /** Runs another command instead. */
  exec(
    command: ReadonlyArray<string>,
    environment: Readonly<Record<string, string>>,
    catalogue: string
  ): ChildProcess {
    const settings = [...this.config.Env, ...Object.entries(environment).map(([name, value]) => `${name}=${value}`)]
    return spawn(
      "unshare",
      [
        "--mount",
        "/bin/sh",
        "-euc",
        `root=$1 user=$2 folder=$3 catalogue=$4; shift 4
         mkdir -p "$root/etc/gateway"; touch "$root/etc/gateway/gateway.yaml"
         mount --bind "$root" "$root"; mount -o remount,bind,ro "$root"
         mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount -t tmpfs tmpfs "$root/tmp"
         mount --bind "$catalogue" "$root/etc/gateway/gateway.yaml"
         exec chroot --userspec="$user" "$root" /usr/bin/env -i -C "$folder" "$@"`,
        "container",
        ...[this.root, this.config.User, this.config.WorkingDir, catalogue],
        ...settings,
        ...command
      ],
      { stdio: ["ignore", "pipe", "pipe"] }
    )
  }

  has(path: string): boolean {
    return existsSync(join(this.root, path))
  }
}
