//! Pages that mean harm.

use isolane_kit::browser::BrowserLimits;
use serde_json::json;

use super::support::{Test, until};

#[test]
fn answers_are_bounded() {
    let limits = BrowserLimits { max_result_bytes: 100_000, timeout_ms: 120_000 };
    let Some(test) = Test::with(
        |options| options.max_message_bytes = 4 << 20,
        |options| options.browser.as_mut().expect("a browser").limits = limits,
    ) else {
        return;
    };
    let too_large = json!(["BrowserLimit", "the answer is larger than 100000 bytes"]);
    let html =
        "<p>x</p><script>document.querySelector('p').textContent = 'x'.repeat(200000)</script>";
    let tool = "return [await fails(browser.extractText('p')), await fails(browser.extractHtml()),
        await fails(browser.evaluate(\"'x'.repeat(200000)\")),
        // A page that writes JSON in its own way is cut off by the connection.
        await fails(browser.evaluate(\"JSON.stringify = () => 'x'.repeat(50000000); return 1\")),
        await fails(browser.evaluate(\"JSON.stringify = () => '\\\\ud800'; return 1\")),
        (await browser.navigate(args.url)).status]";
    let value = test.value_on(html, tool);
    for at in 0..4 {
        assert_eq!(value[at], too_large, "{at}");
    }
    assert_eq!(value[4][0], "BrowserError");
    assert_eq!(value[5], 200);
    let high = "<body style='margin:0'><div style='height:10000000px;width:10px'>x</div>";
    let value = test.value_on(high, "return await fails(browser.screenshot({ full_page: true }))");
    assert_eq!(value[0], "BrowserError");
    let noise = "<body style='margin:0'><canvas width=400 height=3000></canvas><script>
        const pen = document.querySelector('canvas').getContext('2d');
        const image = pen.createImageData(400, 3000);
        for (let at = 0; at < image.data.length; at += 1) image.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
        pen.putImageData(image, 0, 0);
        </script>";
    let value = test.value_on(noise, "return await fails(browser.screenshot({ full_page: true }))");
    assert_eq!(value, too_large);
}

#[test]
fn pages_that_disturb_do_not_disturb_the_host() {
    let Some(test) = Test::new() else { return };
    let dialogs = "<p>calm</p><script>for (let i = 0; i < 20; i += 1) alert(i); window.answers = [confirm('?'), prompt('?')];
        addEventListener('beforeunload', (event) => { event.preventDefault(); event.returnValue = 'stay'; });</script>";
    let tool = "await browser.click('p');
        const answers = await browser.evaluate('answers');
        await browser.navigate(args.url + '?again');
        await browser.close();
        return [answers, (await browser.navigate('about:blank'.length ? args.url : '')).status]";
    assert_eq!(test.value_on(dialogs, tool), json!([[false, null], 200]));
    // Names that hide the properties of the document and of forms.
    let hidden = "<form id=f><input name=innerText value=1><input name=innerHTML><input name=getClientRects><p>inside</p></form>
        <img name=querySelector><img name=evaluate><form name=createElement></form>
        <script>Document.prototype.querySelector = () => { throw 1 }; Object.getOwnPropertyDescriptor = 1</script>";
    assert_eq!(
        test.value_on(
            hidden,
            "return [await browser.extractText('form#f'), await browser.extractText('p')]"
        ),
        json!(["inside", "inside"])
    );
    // A flood of pages, all of which are open at once.
    let flood =
        "<button onclick='for (let i = 0; i < 40; i += 1) window.open(`/?${i}`)'>open</button>";
    let tool = "await browser.click('button'); return (await browser.navigate(args.url)).status";
    assert_eq!(test.value_on(flood, tool), 200);
    // Downloads and files.
    let tool = "return [(await fails(browser.navigate(args.url.replace('document', 'file'))))[0], await browser.extractText('p')]";
    assert_eq!(
        test.value_on("<p>here</p><input type=file>", tool),
        json!(["BrowserError", "here"])
    );
    assert_eq!(
        test.value_on(
            "<input type=file>",
            "await browser.click('input'); return await browser.evaluate('1')"
        ),
        1
    );
    let tool = "return [(await fails(browser.evaluate('debugger; return 1'))), (await fails(browser.evaluate('window.close()')))]";
    assert_eq!(test.value(tool)[0], 1);
    // The page closes at its own time.
    until("another page", || {
        test.value("return (await fails(browser.navigate(args.url))).status") == 200
    });
}
