/** Types for the part of espeak-ng's WebAssembly package that the gateway uses. The package has none. */
declare module "@echogarden/espeak-ng-emscripten" {
  interface EspeakWorker {
    /** Returns 0 on success. */
    set_voice(name: string): number
    set_pitch(pitch: number): void
    set_rate(wordsPerMinute: number): void
    /** Calls back with some samples at a time, `null` at the end; stops at `true`. */
    synthesize(text: string, callback: (samples: Int16Array | null) => boolean): void
  }
  const start: () => Promise<{ readonly eSpeakNGWorker: new() => EspeakWorker }>
  export default start
}
