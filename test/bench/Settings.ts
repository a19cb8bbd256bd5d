/** The settings of all benchmarks. */
import { Config } from "effect"

const words = (name: string, byDefault: string) =>
  Config.String(name).pipe(
    Config.withDefault(byDefault),
    Config.map((text) => text.split(",").map((word) => word.trim()))
  )

export const settings = (options: {
  readonly rounds: number
  readonly seconds?: number
  readonly warmUp?: number
  readonly stacks: ReadonlyArray<string>
}) =>
  Config.all({
    stacks: words("BENCH_STACKS", options.stacks.join(",")),
    /** Selects rows by prefixes of their names. */
    isWanted: Config.map(words("BENCH_ROWS", ""), (wanted) => (row: { readonly name: string }) =>
      wanted.some((beginning) => row.name.startsWith(beginning))),
    rounds: Config.Int("BENCH_ROUNDS").pipe(Config.withDefault(options.rounds)),
    seconds: Config.Int("BENCH_SECONDS").pipe(Config.withDefault(options.seconds ?? 4)),
    warmUp: Config.Int("BENCH_WARM_UP").pipe(Config.withDefault(options.warmUp ?? 25)),
    results: Config.String("BENCH_RESULTS").pipe(Config.withDefault("test/bench/results")),
    natsServer: Config.String("NATS_SERVER").pipe(Config.withDefault("nats-server"))
  })

/** The warm-up of a row after the first. */
export const again = (warmUp: number): number => Math.ceil(warmUp / 5)
