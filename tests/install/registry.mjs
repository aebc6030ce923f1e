// A registry of npm on loopback, for the packages of `target/packages`.
//
// In: tarballs; manifests of packages of other platforms. Out: a server that answers for those names alone, and the paths
// that were asked for. It serves the tarballs byte by byte. The packages of other platforms are named in the optional
// dependencies of the main package; they have no tarball, so an install that wants one fails.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename } from 'node:path';

/** @returns {Promise<{ url: string, asked: string[], close: () => void }>} */
export async function serve(tarballs, others) {
  const packuments = new Map(others.map((manifest) => [manifest.name, [manifest, undefined]]));
  for (const path of tarballs) {
    const manifest = JSON.parse(execFileSync('tar', ['-xzOf', path, 'package/package.json'], { encoding: 'utf8' }));
    if (manifest.optionalDependencies !== undefined) for (const { name, version } of others) manifest.optionalDependencies[name] = version;
    packuments.set(manifest.name, [manifest, path]);
  }
  const files = new Map(tarballs.map((path) => [basename(path), readFileSync(path)]));
  const asked = [];
  const server = createServer(({ url }, answer) => {
    asked.push(url);
    const [name, file] = url.slice(1).split('/-/');
    if (files.has(file)) return void answer.end(files.get(file));
    if (file !== undefined || !packuments.has(name)) return void answer.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    const [manifest, path] = packuments.get(name);
    const bytes = path === undefined ? undefined : files.get(basename(path));
    answer.setHeader('content-type', 'application/json');
    answer.end(JSON.stringify(packument(manifest, bytes, `http://${address}/${name}/-/${path === undefined ? 'absent.tgz' : basename(path)}`)));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${server.address().port}`;
  return { url: `http://${address}`, asked, close: () => void server.close() };
}

function packument(manifest, bytes, tarball) {
  const integrity = `sha512-${createHash('sha512').update(bytes ?? '').digest('base64')}`;
  const version = { ...manifest, dist: { tarball, integrity } };
  return { name: manifest.name, 'dist-tags': { latest: manifest.version }, versions: { [manifest.version]: version } };
}
