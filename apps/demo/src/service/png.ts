import { readFile } from 'node:fs/promises'
import { initWasm, Resvg } from '@resvg/resvg-wasm'

const urls = {
  wasm: import.meta.resolve('@resvg/resvg-wasm/index_bg.wasm'),
  // The system may have no fonts.
  fonts: [
    import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf'),
    import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf'),
  ],
}

let loaded: Promise<Buffer[]> | undefined

async function load(): Promise<Buffer[]> {
  await initWasm(readFile(new URL(urls.wasm)))
  return await Promise.all(urls.fonts.map((url) => readFile(new URL(url))))
}

/** Renders an SVG image as PNG. Loads the renderer at first use. */
export async function pngOf(svg: string): Promise<Uint8Array> {
  loaded ??= load()
  const fontBuffers = await loaded
  return new Resvg(svg, { font: { fontBuffers, defaultFontFamily: 'DejaVu Sans' } })
    .render()
    .asPng()
}
