"""The page with long lines, wide tables, and answers in Chinese and Arabic, on a phone and on desktops."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from tests.app.server.page.looking import ask, look, wait_for_answer
from tests.driver import Page, needs_driver

pytestmark = [needs_driver, pytest.mark.slow]

LONG = "https://example.org/" + "valve/" * 40
CODE = f"""Set this [1]:

```python
pressure_of_the_vessel = read_value_of_sensor(name="{"sensor_" * 30}", unit="bar", timeout_s=30.0)  # one long line
```

The address is {LONG} and `{"inline_code_" * 20}`.

> {"Donaudampfschifffahrtsgesellschaft" * 5}
"""
HEAD = ("Designation", "Service temperature", "Manufacturer", "Compatibility", "Certification", "Remarks")
TABLE = "\n".join(
    [
        "| " + " | ".join(HEAD) + " |",
        "|---" * len(HEAD) + "|",
        f"| KV-133 | 212 °C | Kelvarn Council for Plant Standards | F40 | {LONG} | Permanently recommended [1] |",
        "| 垫片 | 不超过二百一十二摄氏度 | 设备标准委员会 | 兼容性评级 | 认证编号 | 长期推荐使用，定期检查 |",
    ]
)
CHINESE = f"""## 壁厚

{"容器的壁厚为四十毫米，必须每年检查一次，" * 12}

1. 先关闭阀门
2. 再检查压力[1]

{"壁" * 300}
"""
ARABIC = """# أنبوب الضغط

تبلغ درجة الحرارة القصوى **212** درجة مئوية [1]، ويجب فحص الحشية كل سنة قبل التشغيل وبعده.

- افحص الصمام أولاً
- ثم افحص الضغط

> ملاحظة مهمة

| القطعة | الحرارة |
|---|---|
| الحشية | 212 |
"""
ASKED = {
    "Which material closes the joint at Rating F40 of KV-133?": CODE,
    "How hot may Dorsan become?": TABLE,
    "YL506的B2型吊厢，吊臂下端所穿的零件要有多高的抗剪强度？": CHINESE,
    "ما هي أعلى درجة حرارة؟ " + "درجة" * 40: ARABIC,
}


@pytest.fixture
def talk(page: Page, model: ScriptedServer) -> Iterator[Page]:
    """A conversation whose answers are those above."""

    def reply(request: ReceivedRequest) -> ChatReply | None:
        prompt = request.prompt
        if prompt.kind != "read":
            return None
        return ChatReply(text=next((text for asked, text in ASKED.items() if prompt.query in asked), CODE))

    model.responses = reply
    try:
        for question in ASKED:
            ask(page, question)
            wait_for_answer(page)
        yield page
    finally:
        model.responses = None


def test_nothing_is_cut_off_or_wider_than_the_window(talk: Page) -> None:
    for width in (390, 1280, 1440):
        for dark in (False, True):
            talk.appear(width=width, height=900, dark=dark)
            for number in range(1, len(ASKED) + 1):
                talk.run(f"document.querySelector('.turn:nth-child({number})').scrollIntoView()")
                look(talk, f"layout-{width}-{number}{'-dark' if dark else ''}")
    directions = "[...document.querySelectorAll('.answer ul')].map((one) => getComputedStyle(one).direction)"
    assert talk.run(f"return {directions}") == ["rtl"]


def test_the_name_of_the_collection_is_seen_whole_beside_the_system(page: Page) -> None:
    for width in (390, 1280, 1440):
        page.appear(width=width)
        measured = page.run(
            """const box = document.querySelector(".picker select");
            const whole = box.cloneNode(true);
            whole.style.position = "absolute";
            box.after(whole);
            const widths = [box.offsetWidth, whole.offsetWidth];
            whole.remove();
            return widths;"""
        )
        assert isinstance(measured, list)
        assert measured[0] == measured[1], width
