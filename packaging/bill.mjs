// The bill of materials of a release, in CycloneDX 1.6.
//
// In: the parts that are linked into the packages of each target. Out: JSON for scanners of vulnerabilities and of
// licences: crates with the checksums of `Cargo.lock`, and the C libraries within them. The same parts give the same bytes.

const STANDARD_LIBRARY = 'rust-std';

/**
 * @param {{ name: string, version: string, license: string }} product
 * @param {import('./linked.mjs').Part[]} parts without duplicates
 * @param {string} rust the version of the compiler, whose library is linked in
 */
export function bill(product, parts, rust) {
  const own = parts.filter(({ isOwn }) => isOwn).map(component);
  const linked = parts.filter(({ isOwn }) => !isOwn).map(component);
  const library = { type: 'library', 'bom-ref': STANDARD_LIBRARY, name: STANDARD_LIBRARY, version: rust, licenses: [{ expression: 'MIT OR Apache-2.0' }] };
  const root = `${product.name}@${product.version}`;
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: { type: 'library', 'bom-ref': root, name: product.name, version: product.version, licenses: [{ expression: product.license }], components: own },
    },
    components: [...linked, library],
    dependencies: [{ ref: root, dependsOn: [...linked, library].map((one) => one['bom-ref']) }],
  };
}

function component({ name, version, license, checksum, crate }) {
  const purl = crate === undefined ? `pkg:cargo/${name}@${version}` : `pkg:generic/${name}@${version}`;
  const licences = license.startsWith('see ') ? [{ license: { name: license } }] : [{ expression: license }];
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    licenses: licences,
    purl,
    ...(checksum === undefined ? {} : { hashes: [{ alg: 'SHA-256', content: checksum }] }),
    ...(crate === undefined ? {} : { properties: [{ name: 'compiled-by', value: crate }] }),
  };
}
