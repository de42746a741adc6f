// The bundled worker as text (build.mjs).
declare module "worker-source" {
  const source: string;
  export default source;
}
