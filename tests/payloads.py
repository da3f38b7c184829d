"""Texts that run as script where a page forgets to escape them, one or two of each class.

The classes are those of the usual lists (such as OWASP's); the texts are written for these tests. Each calls
``alert`` where it runs. ``NAMES`` can be names of files: they have no slash.
"""

from __future__ import annotations

__all__ = ["CONTENTS", "NAMES", "PAYLOADS"]

PAYLOADS = (
    # Elements, in the usual places and cases.
    "<script>alert(1)</script>",
    "<ScRiPt >alert(2)</sCrIpT >",
    "<scr<script>ipt>alert(3)</scr</script>ipt>",
    "<img src=x onerror=alert(4)>",
    "<img/src=x/onerror=alert(5)//",
    "<svg onload=alert(6)>",
    "<svg><animate onbegin=alert(7) attributeName=x dur=1s>",
    "<iframe srcdoc='<script>parent.alert(8)</script>'>",
    "<details open ontoggle=alert(9)>",
    "<body onpageshow=alert(10)>",
    "<input autofocus onfocus=alert(11)>",
    "<math><mtext><img src onerror=alert(12)>",
    "<style>@import 'javascript:alert(13)';</style>",
    "<link rel=stylesheet href=data:text/css,*{color:red}>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(14)'>",
    "<base href=javascript:alert(15)//>",
    # Out of an attribute, with each kind of quotation mark, and with none.
    '"><script>alert(16)</script>',
    "'><img src=x onerror=alert(17)>",
    '" onmouseover=alert(18) autofocus onfocus=alert(18) x="',
    "' onfocus='alert(19)' autofocus x='",
    "x onfocus=alert(20) autofocus",
    "` onfocus=alert(21) autofocus `",
    # Out of texts that elements hold.
    "</title><script>alert(22)</script>",
    "</textarea><script>alert(23)</script>",
    "</pre></code><img src=x onerror=alert(24)>",
    "</select></option><svg onload=alert(25)>",
    "--><script>alert(26)</script><!--",
    "]]><script>alert(27)</script>",
    # As an address.
    "javascript:alert(28)",
    "JaVaScRiPt:alert(29)",
    "java\tscript:alert(30)",
    "data:text/html,<script>alert(31)</script>",
    "//other.example/x.js",
    # Out of script, templates and their like.
    "'-alert(32)-'",
    '";alert(33);//',
    "\\';alert(34);//",
    "${alert(35)}",
    "{{constructor.constructor('alert(36)')()}}",
    "{{ 7 * 7 }}{% raw %}",
    "#{7*7}<%= 7 * 7 %>",
    # Characters that browsers read in another way than they look.
    "\u2028alert(37)\u2029",
    "\uff1cscript\uff1ealert(38)\uff1c/script\uff1e",
    "+ADw-script+AD4-alert(39)+ADw-/script+AD4-",
    "&lt;script&gt;alert(40)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(41)&#62;",
    "%3Cscript%3Ealert(42)%3C%2Fscript%3E",
    "\u202e<img src=x onerror=alert(43)>\u202c",
    "<a href=&#106;avascript:alert(44)>x",
)

NAMES = tuple(
    dict.fromkeys(
        name
        for text in PAYLOADS
        if (name := "".join(one for one in text if one.isprintable() and one != "/"))
    )
)

CONTENTS = {
    "page.html": ("text/html", "\n".join(PAYLOADS)),
    "drawing.svg": (
        "image/svg+xml",
        "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(50)'><script>alert(51)</script></svg>",
    ),
    "table.csv": ("text/csv", "\n".join(f'"{text.replace(chr(34), chr(34) * 2)}",=1+1' for text in PAYLOADS)),
    "text.md": ("text/markdown", "\n\n".join(PAYLOADS)),
    "feed.xml": (
        "application/xml",
        "<?xml version='1.0'?><x xmlns:h='http://www.w3.org/1999/xhtml'><h:script>alert(52)</h:script></x>",
    ),
    "wrong.png": ("image/png", "<script>alert(53)</script>"),
    "type.bin": ('text/x-unknown; a="<script>alert(54)</script>"', "<script>alert(54)</script>"),
}
