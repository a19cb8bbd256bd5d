/** The playground's API key, kept only in the page's memory. */
import { createContext, type ReactNode, useContext, useMemo, useState } from "react"

interface Held {
  readonly key: string
  readonly setKey: (key: string) => void
}

const Context = createContext<Held>({ key: "", setKey: () => {} })

export const PlaygroundKeyProvider = ({ children }: { readonly children: ReactNode }) => {
  const [key, setKey] = useState("")
  const held = useMemo(() => ({ key, setKey }), [key])
  return <Context value={held}>{children}</Context>
}

export const usePlaygroundKey = () => useContext(Context)
