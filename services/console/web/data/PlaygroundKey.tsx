/** The playground's API key, kept only in the page's memory. */
import { createContext, type ReactNode, useContext, useMemo, useState } from "react"

interface Held {
  readonly key: string
  readonly hold: (key: string) => void
}

const Context = createContext<Held>({ key: "", hold: () => {} })

export const PlaygroundKeyProvider = ({ children }: { readonly children: ReactNode }) => {
  const [key, hold] = useState("")
  const held = useMemo(() => ({ key, hold }), [key])
  return <Context value={held}>{children}</Context>
}

export const usePlaygroundKey = () => useContext(Context)
