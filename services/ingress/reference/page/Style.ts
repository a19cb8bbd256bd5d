/** The style sheet of the reference's page. */
import { Html } from "./Html.ts"

export const style = new Html(`
:root { color-scheme: light dark; --line: light-dark(#d8dce4, #343a46); --soft: light-dark(#f4f5f8, #1c2028);
  --quiet: light-dark(#5b6472, #9aa4b2); --link: light-dark(#3446b8, #9fb0ff) }
* { box-sizing: border-box }
body { margin: 0; font: 15px/1.55 system-ui, sans-serif; background: light-dark(#fff, #12151b); color: light-dark(#1b2030, #e4e7ee) }
a { color: var(--link); text-decoration: none }
a:hover { text-decoration: underline }
nav { position: fixed; inset: 0 auto 0 0; width: 18rem; overflow-y: auto; padding: 1rem 1.25rem; border-right: 1px solid var(--line);
  background: var(--soft); font-size: 14px }
nav p { margin: 1rem 0 .25rem; font-weight: 600 }
nav ul { list-style: none; margin: 0; padding: 0 }
nav li { margin: .2rem 0; overflow-wrap: anywhere }
main { margin-left: 18rem; padding: 1.5rem 2.5rem 6rem; max-width: 70rem }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) }
h3 { margin: 0 0 .25rem }
h3 a { color: inherit }
article { margin: 2rem 0; scroll-margin-top: 1rem }
code, pre { font: 13px/1.5 ui-monospace, monospace }
code { background: var(--soft); padding: .1em .3em; border-radius: 4px; overflow-wrap: anywhere }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .75rem 1rem; overflow-x: auto }
small { color: var(--quiet); font-size: 13px }
small code { background: none; padding: 0 }
b { font-weight: 600 }
p { margin: .5rem 0 }
main ul { padding-left: 1.1rem; margin: .4rem 0 }
main li { margin: .35rem 0 }
summary { cursor: pointer; color: var(--link); margin: .3rem 0 }
details details { margin-left: .2rem }
@media (max-width: 60rem) { nav { position: static; width: auto; border: 0 } main { margin: 0; padding: 1rem } }
`)
