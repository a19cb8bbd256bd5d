/** What is used of espeak-ng's WebAssembly package, which brings no types. */
declare module "@echogarden/espeak-ng-emscripten" {
  interface EspeakWorker {
    /** 0 where it worked. */
    set_voice(name: string): number
    set_pitch(pitch: number): void
    set_rate(wordsPerMinute: number): void
    /** Calls back with some samples at a time, `null` at the end; `true` stops it. */
    synthesize(text: string, callback: (samples: Int16Array | null) => boolean): void
  }
  const start: () => Promise<{ readonly eSpeakNGWorker: new() => EspeakWorker }>
  export default start
}
