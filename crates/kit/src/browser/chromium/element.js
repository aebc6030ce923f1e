function (selector, action, argument) {
  // This runs in a world of its own. A page can still hide properties of its document and of its forms behind elements of
  // that name, so those are taken from their prototypes.
  const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name)?.get;
  const textOf = (node) => getter(Node.prototype, 'textContent').call(node) ?? '';

  const byText = (wanted) => {
    const quoted = /^(["'])(.*)\1$/s.exec(wanted);
    const plain = (text) => text.replace(/\s+/g, ' ').trim();
    const folded = plain(wanted).toLowerCase();
    const matches = quoted
      ? (node) => plain(textOf(node)) === plain(quoted[2])
      : (node) => plain(textOf(node)).toLowerCase().includes(folded);
    const ownerOf = (node) => (node instanceof Document ? Document.prototype : Element.prototype);
    const walk = (node) => {
      for (const child of getter(ownerOf(node), 'children').call(node)) {
        if (!/^(script|style|noscript|head)$/i.test(child.localName) && matches(child)) return walk(child);
      }
      return node;
    };
    const found = walk(document);
    return found instanceof Document ? null : found;
  };

  const find = () => {
    const path = selector.startsWith('xpath=') ? selector.slice(6) : selector.startsWith('//') ? selector : undefined;
    try {
      if (path !== undefined) {
        const { singleNodeValue } = Document.prototype.evaluate.call(document, path, document, null, 9, null);
        return singleNodeValue instanceof Element ? singleNodeValue : null;
      }
      if (selector.startsWith('text=')) return byText(selector.slice(5));
      const css = selector.startsWith('css=') ? selector.slice(4) : selector;
      return Document.prototype.querySelector.call(document, css);
    } catch {
      throw new Error(`${selector} is no selector of CSS, nor one that begins with xpath= or text=`);
    }
  };

  const element = find();
  if (element === null) return { is: 'missing' };

  const rectangle = () => Array.from(Element.prototype.getClientRects.call(element)).find(({ width, height }) => width > 0 && height > 0);
  const isVisible = () => rectangle() !== undefined && getComputedStyle(element).visibility === 'visible';
  const isDisabled = () => Element.prototype.matches.call(element, ':disabled') || Element.prototype.closest.call(element, '[aria-disabled="true"]') !== null;
  const focus = () => (element instanceof HTMLElement ? HTMLElement.prototype.focus.call(element) : element.focus?.());

  if (action === 'read') {
    const [property, mostUnits] = argument;
    const owner = [HTMLElement.prototype, Element.prototype].find((prototype) => getter(prototype, property) && element instanceof prototype.constructor);
    const text = owner === undefined ? textOf(element) : getter(owner, property).call(element);
    return text.length > mostUnits ? { is: 'tooLarge' } : { is: 'text', text: text.toWellFormed() };
  }

  if (!isVisible()) return { is: 'hidden' };
  if (action === 'box') {
    Element.prototype.scrollIntoViewIfNeeded.call(element);
    const { left, top, width, height } = Element.prototype.getBoundingClientRect.call(element);
    return { is: 'ready', box: [left + scrollX, top + scrollY, width, height] };
  }

  if (isDisabled()) return { is: 'disabled' };
  if (action === 'point') {
    Element.prototype.scrollIntoViewIfNeeded.call(element);
    const { left, top, right, bottom, width, height } = rectangle() ?? {};
    const middle = (from, to, most) => (Math.max(from, 0) + Math.min(to, most)) / 2;
    const x = middle(left, right, innerWidth);
    const y = middle(top, bottom, innerHeight);
    const hit = Document.prototype.elementFromPoint.call(document, x, y);
    const labels = hit === null ? null : Element.prototype.closest.call(hit, 'label');
    const isHit = hit !== null && (Node.prototype.contains.call(element, hit) || labels?.control === element);
    return isHit ? { is: 'ready', box: [left, top, width, height], point: [x, y] } : { is: 'covered' };
  }

  const kind = element instanceof HTMLInputElement ? element.type : undefined;
  const isText = kind !== undefined || element instanceof HTMLTextAreaElement;
  const isEditable = isText || element.isContentEditable === true;
  if (action === 'caret') {
    focus();
    if (isText) {
      const end = element.value.length;
      // Some kinds of inputs have no selection.
      try {
        element.setSelectionRange(end, end);
      } catch {}
    } else if (isEditable) {
      const selection = getSelection();
      selection.selectAllChildren(element);
      selection.collapseToEnd();
    }
    return { is: 'ready' };
  }

  // What is left is to fill it.
  if (!isEditable || /^(checkbox|radio|file|button|submit|reset|image|hidden)$/.test(kind ?? '')) {
    throw new Error(`${selector} takes no text`);
  }
  if (isText && element.readOnly) return { is: 'disabled' };
  focus();
  if (/^(color|date|time|datetime-local|month|range|week)$/.test(kind ?? '')) {
    // Their text is not typed, but chosen.
    element.value = argument;
    if (element.value !== argument) throw new Error(`${selector} does not take this value`);
    element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    element.dispatchEvent(new Event('change', { bubbles: true }));
    return { is: 'filled' };
  }
  if (isText) element.select();
  else getSelection().selectAllChildren(element);
  return { is: 'ready' };
}
