// Makes the npm package of this platform from a build.
//
//     node bindings-node/platform.mjs FOLDER
//
// In: the addon and the worker beside this file. Out: that folder, which must not exist yet, with both and their
// manifest. npm keeps the files that `files` names executable.

import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { HOME, ROOT, WORKER_FILE } from './addon.mjs';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: node bindings-node/platform.mjs FOLDER');

const addon = readdirSync(HOME).find((name) => name.endsWith('.node'));
if (addon === undefined) throw new Error('no addon was built: npm run build');
const files = [addon, WORKER_FILE];

const { version, license, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const name = `isolane-${addon.split('.')[1]}`;
const libc = process.platform === 'linux' ? { libc: [addon.includes('-musl') ? 'musl' : 'glibc'] } : {};
const manifest = { name, version, license, engines, main: addon, files, os: [process.platform], cpu: [process.arch], ...libc };

mkdirSync(folder);
for (const file of files) copyFileSync(join(HOME, file), join(folder, file));
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
