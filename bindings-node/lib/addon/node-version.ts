// The version of Node.js that the package needs.
//
// In: the version of this process. Out: an error that names the version, if this one is older. Each entry of the package
// loads this module first: the others use objects that older versions lack, and would fail at those.

/** As `engines` of the manifest says. */
const OLDEST = 20;

const { node } = process.versions;
if (Number(node.split('.')[0]) < OLDEST) throw new Error(`isolane needs Node.js ${OLDEST} or newer, and this is Node.js ${node}`);
