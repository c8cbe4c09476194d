"""
A text cut into words, their roots, and which of them say nothing of what is looked for.

Identifiers stay whole, French elision is undone, and scripts without spaces are cut into pieces. Nothing here knows
query syntax; whatever characters a question has, the output is words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

_ELISION = re.compile(r"(?:l|d|j|m|n|s|t|c|qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|presqu)['’ʼ](?=\w)", re.IGNORECASE)
_ITALIAN_ELISION = re.compile(r"(?:l|d|c|s|un|all|dell|dall|nell|sull|quell|quest|cos)['’ʼ](?=\w)", re.IGNORECASE)
_ELISIONS = {"fr": _ELISION, "it": _ITALIAN_ELISION}
_FIXED = frozenset({"aujourd'hui", "aujourd’hui"})
_LONGEST_FIXED = max(map(len, _FIXED))

# What Python does not count among a word's characters: vowel signs and tone marks of the scripts of India and
# South-East Asia, points of Hebrew and Arabic, separate accents.
_MARKS = (
    r"\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0981-\u0983\u09bc-\u0df3"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u109d\u17b4-\u17d3"
)
_CHAR = rf"(?:[^\W_]|[{_MARKS}])"
# Possessive: what a word has taken it never gives back, however the rest goes on. A run of underscores is looked into
# from its first one alone.
_CHARS = f"{_CHAR}++"
_TOKEN = re.compile(
    rf"{_CHARS}(?:(?:[.\-_/@:+&'’ʼ‑–]|::){_CHARS})*+(?:\+\+|#)?|(?<!_)_++{_CHARS}(?:_++{_CHARS})*+_*+",
)
_CODE = re.compile(r"[\d_./@:+#]|(?<=[a-z])[A-Z]")
_PART = re.compile(_CHARS)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Thai, Lao, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
_IDEOGRAPHIC = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_KATAKANA = re.compile(r"([\u30a1-\u30fa\u30fc-\u30fe]+)")
_POSSESSIVE = re.compile(r"['’ʼ]s?$")


@dataclass(frozen=True, slots=True)
class Word:
    """
    One word of a question.

    *text* is as written, *start* its place in the question. *is_identifier* is True for what must stay whole: a
    number with its marks, a file name, a setting, a version. *parts* are the plain words inside, the text itself when
    there is nothing to take apart.
    """

    text: str
    start: int
    is_identifier: bool
    parts: tuple[str, ...]


def words_of(text: str, language: str) -> tuple[Word, ...]:
    """Return the words of *text* in order; empty when it has neither letter nor digit."""
    found: list[Word] = []
    for match in _TOKEN.finditer(text):
        found.extend(_words_at(match.group(), match.start(), language))
    return tuple(found)


def sought_in(text: str, language: str) -> tuple[str, ...]:
    """
    Return the terms that find *text* in an index: its words in order, a run of an unspaced script in pieces.

    Engines cut such a run into single characters, so that a piece is found as a phrase; the whole clause would be one
    phrase that hardly any document has. Katakana stays whole: engines take it for one word.
    """
    found: list[str] = []
    for word in words_of(text, language):
        if not is_unspaced(word.text):
            found.append(word.text)
            continue
        for run in filter(None, _KATAKANA.split(word.text)):
            found.extend((run,) if _KATAKANA.fullmatch(run) else pieces_of(run))
    return tuple(found)


def pieces_of(run: str) -> tuple[str, ...]:
    """
    Return the overlapping pieces of *run*, two characters long in Chinese and Japanese, three in the other scripts.

    A run that is no longer than a piece comes back itself.
    """
    size = 2 if _IDEOGRAPHIC.search(run) else 3
    return tuple(run[start : start + size] for start in range(max(1, len(run) - size + 1)))


def is_unspaced(text: str) -> bool:
    """Say whether *text* is of a script that puts no spaces between words."""
    return _UNSPACED.match(text) is not None


def _words_at(token: str, start: int, language: str) -> list[Word]:
    if _UNSPACED.search(token):
        return _unspaced_words(token, start)
    own = _after_elisions(token, language)
    token, start = token[own:], start + own
    if token.casefold() in _FIXED:
        return [Word(token, start, False, (token,))]
    bare = _POSSESSIVE.sub("", token)
    if _CODE.search(bare):
        return [Word(bare, start, True, _parts_of(bare))]
    return [Word(part.group(), start + part.start(), False, (part.group(),)) for part in _PART.finditer(bare)]


def _after_elisions(token: str, language: str) -> int:
    """Return where in *token* the word begins that has no article or such before it: "l'eau", "qu'd'eau"."""
    elision = _ELISIONS.get(language)
    at = 0
    while elision is not None and token[at : at + _LONGEST_FIXED + 1].casefold() not in _FIXED:
        match = elision.match(token, at)
        if match is None:
            break
        at = match.end()
    return at


def _parts_of(token: str) -> tuple[str, ...]:
    if token.isdecimal():
        return (token,)
    runs = _PART.findall(token)
    parts = dict.fromkeys(piece for run in runs for piece in _CAMEL.findall(run) or [run])
    plain = dict.fromkeys(run for run in runs if run not in parts)
    return tuple(plain | parts) or (token,)


def _unspaced_words(token: str, start: int) -> list[Word]:
    pieces = re.finditer(rf"{_UNSPACED.pattern}|{_CHAR}+?(?={_UNSPACED.pattern}|\W|_|$)", token)
    return [Word(piece.group(), start + piece.start(), False, (piece.group(),)) for piece in pieces]


_SUFFIXES = {
    "en": """ational ations ation ators ator ating ative atives ated ates ate ments ment nesses ness ingly ings ing edly
        ies ied ious iously ions ion ers er or ors ely ly ed es ence ences ance ances ent ant ents ants able ible ably
        ity ities al ally ic ical ically ics ous ously ism ist ists ize izes ized izing ization s y e i""",
    "fr": """ations ation ateurs ateur atrice atrices ements ement ments ment ités ité iques ique istes iste ismes isme
        ences ence ances ance antes ante ants ant entes ente ents ent euses euse eurs eur ives ive ifs if ables able
        aient èrent erent erait erions ait ais era eront erai iez ions ons ées ée és é er ez ir it ie ies eaux eau aux
        al ale ales elle elles el els es e s x""",
    "de": """ungen ung heiten heit keiten keit lichen liche licher liches lich ischen ische ischer isches isch ern em
        en er es est et te ten ter tes e s n""",
    "es": """aciones ación acion adores adora ador amientos amiento imientos imiento mente idades idad ables able ibles
        ible istas ista ismos ismo ancias ancia encias encia antes ante ivas iva ivos ivo osas osa osos oso aron ieron
        aba aban ando iendo adas ada ados ado idas ida idos ido ar er ir ó é an en as os es a o e s""",
    "it": """azioni azione amenti amento imenti imento mente ità abili abile ibili ibile isti ista ismi ismo anza anze
        enza enze anti ante ivi ivo iva ive osi oso osa ose ando endo ati ato ata ate iti ito ita ite uti uto are ere
        ire a e i o""",
    "pt": """ações ação adores adora ador amentos amento imentos imento mente idades idade áveis ável íveis ível istas
        ista ismos ismo ância âncias ência ências antes ante ivas iva ivos ivo osas osa osos oso aram eram iram ando
        endo indo adas ada ados ado idas ida idos ido ar er ir ões ão as os es a o e s""",
    "nl": """heden heid ingen ing lijke lijk isch ische en er es e s""",
    "ru": """иями ями ами иях ях ах иям ям ам ией ей ой ий ый ые ие ое ее ая яя ого его ому ему ыми ими ых их ую юю ов
        ев ом ем ость ости ение ения ению ением ание ания анию анием ировать овать ать ять еть ить ут ют ат ят ет ит ла
        ло ли л ешь ишь ть ся сь а я о е ы и у ю ь й""",
}
_TABLES = {code: tuple(sorted(words.split(), key=len, reverse=True)) for code, words in _SUFFIXES.items()}
_MIN_STEM = {"de": 4}
_DEFAULT_MIN_STEM = 3
_LONG_SUFFIX = 3
_SHORT_WORDS_TOO = frozenset({"ing", "ings", "ies", "ied", "ers"})
_VOWELS = frozenset("aeiouyàâéèêëîïôöùûüáíóú")


LONGEST_ENDING_CHARS = max(len(suffix) for table in _TABLES.values() for suffix in table) + 2
"""No stem is shorter than its word by more: a suffix, the double of a letter, a vowel."""

LONG_UNITS = 60
"""No word of a language is so long; such ones are neither stemmed nor kept in memory."""


Asked = TypeVar("Asked", bound=str | tuple[Any, ...])
Found = TypeVar("Found")


class Remembered(dict[Asked, Found]):
    """
    What *find* finds for a word, or for a word and what else it depends on; what it found before is kept.

    Every text of callers and documents that is kept between requests is kept here: at most *most* words, none that is
    longer than words are. What is kept is found without a call of Python's.
    """

    def __init__(self, find: Callable[[Asked], Found], most: int) -> None:
        """Keep nothing yet."""
        super().__init__()
        self._find, self._most = find, most

    def __missing__(self, asked: Asked) -> Found:
        """Find what is not kept."""
        found = self._find(asked)
        if len(asked if isinstance(asked, str) else asked[0]) <= LONG_UNITS:
            if len(self) >= self._most:
                self.clear()
            self[asked] = found
        return found


def _stem(asked: tuple[str, str]) -> str:
    word, language = asked
    if not _DEFAULT_MIN_STEM < len(word) <= LONG_UNITS or language not in _TABLES or not word.isalpha():
        return word
    least = _MIN_STEM.get(language, _DEFAULT_MIN_STEM)
    for suffix in _TABLES[language]:
        if word.endswith(suffix):
            rest = _single(word[: -len(suffix)], least)
            # A long suffix off a short word leaves too little to distinguish words: current, cure.
            is_long = len(suffix) >= _LONG_SUFFIX and suffix not in _SHORT_WORDS_TOO
            if len(rest) >= least + is_long and (language == "ru" or not _VOWELS.isdisjoint(rest)):
                return _bare(rest, least)
    return _single(word, least)


STEMS = Remembered(_stem, 20_000)
"""
The beginning of a lower-case word that its inflections share, by the word and the code of its language.

It is never empty for a word that is not. A language without a table, a short word, a very long one and anything with a
digit come back whole.
"""


def _single(rest: str, least: int) -> str:
    """Undo a doubled last consonant: running, run; planned, plan."""
    if len(rest) > least and rest[-1] == rest[-2] and rest[-1] not in "sz":
        return rest[:-1]
    return rest


def _bare(rest: str, least: int) -> str:
    """Drop the final vowel of the base word: studying, study."""
    return rest[:-1] if len(rest) > least and rest[-1] in "eyi" else rest


_FUNCTION = {
    "en": """a about above after again against all also am an and any are as at be because been before being below
        between both but by can cannot could did do does doing done down during each either else few for from
        further get gets getting got had has have having he her here hers herself him himself his i if in into is it
        its itself just let may me might more most must my myself neither no nor not now of off on once one only or
        other our ours out over own per same shall she should so some such than that the their theirs them
        themselves then there these they this those through thus to too under until up upon us very via was we were
        will with within without would yet you your yours yourself s t d ll m re ve don doesn didn isn aren wasn
        weren won""",
    "fr": """a à afin ai ainsi alors apres après au aucun aucune aussi autre autres aux avait avant avec avoir ayant c
        ça car ce ceci cela celle celles celui cependant ces cet cette ceux chaque chez ci comme contre d dans de depuis
        des dès deux donc dont du durant elle elles en encore entre es est et etaient étaient etait était etant étant
        ete été etre être eu eux fait fois font furent fut hors il ils j je jusqu jusque l la le les leur leurs lors
        lorsque lui m ma mais me meme même mes moi moins mon n ne ni non nos notre nous on ont or ou où par parce parmi
        pas pendant peu peut peuvent plus plusieurs pour pourtant pouvoir pres près puis puisque qu quand que s sa sans
        se selon sera seront ses si sien sinon soit son sont sous suis sur t ta tandis te tel telle tes toi ton tous
        tout toute toutes tres très tu un une vers via vos votre vous y doit doivent dois va vont faire faut""",
    "de": """ab aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf
        aus bei beim bin bis bist da dabei dadurch dafür damit dann das dass dein deine dem den denn der des dessen dich
        die dies diese dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer für
        gegen gibt hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in
        indem ins ist ja je jede jedem jeden jeder jedes jedoch kann kein keine können könnte man mehr mein meine mich
        mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind
        so solche soll sollte sondern sonst über um und uns unser unter viel vom von vor war waren warst weil weiter
        wenn werde werden wird wie wieder will wir wird wo wollen wurde wurden während zu zum zur zwar zwischen""",
    "es": """a al algo algunas algunos ante antes aquel aquella como con contra cuando de del desde donde durante e el
        él ella ellas ellos en entre era eran es esa esas ese eso esos esta está estaba están estas este esto estos fue
        fueron ha había han hasta hay la las le les lo los más me mi mis mucho muy nada ni no nos nosotros o os otra
        otras otro otros para pero poco por porque pues se sea según ser si sí sido sin sobre son su sus también tanto
        te tiene tienen todo todos tu tus un una unas uno unos y ya yo puede pueden debe deben hacer""",
    "it": """a ad ai al alla alle allo anche ancora avere aveva c che chi ci come con contro cui da dagli dai dal dalla
        dalle dei degli del della delle dello di dopo dove e è ed era erano essere fa fra gli ha hanno ho i il in io la
        le lei lo loro lui ma me mi mia mio ne negli nei nel nella nelle nello noi non nostro o ogni per perché più può
        prima quando quello questa queste questi questo se sei si sia solo sono stata stati stato su sua sue sui sul
        sulla suo suoi tra tu tutti tutto un una uno voi l d all dell nell sull""",
    "pt": """a ao aos as às até com como da das de dela dele deles depois do dos e é ela elas ele eles em entre era eram
        essa esse esta está estão este eu foi foram há isso isto já lhe mais mas me mesmo meu minha muito na não nas nem
        no nos nós o os ou para pela pelas pelo pelos por porque pode podem quando que se sem ser seu sua suas seus são
        só também te tem têm ter teu tu um uma você deve fazer""",
    "nl": """aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een eens en er
        ge geen geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je kan kon kunnen
        maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen
        toch toen tot u uit uw van veel voor want waren was we werd wezen wie wil worden wordt zal ze zelf zich zij zijn
        zo zonder zou""",
    "ru": """а без более больше будет будто бы был была были было быть в вам вас весь во вот все всё всего всех вы где
        да даже для до его ее её ей ему если есть еще ещё же за здесь и из или им их к как ко когда которая которые
        который кто ли лишь меня мне может можно мы на над надо нас не него нее нет ни них но о об однако он она они оно
        от по под после при про с свой своей своего себя со так также такой там то того тоже той только том ты у уже
        хотя чего чем через что чтобы эта эти это этого этой этом этот я""",
    "ar": """من في على إلى الى عن أن ان إن لا ما هو هي هم كان كانت يكون تكون هذا هذه ذلك تلك التي الذي الذين أو او
        ثم قد لقد كل بعض غير بين بعد قبل عند حتى إذا اذا لم لن مع كما أي منذ خلال حول تم و ف ب ل""",
    "zh": """的 了 在 是 我 有 和 就 不 人 都 一 一个 上 也 很 到 说 要 去 你 会 着 没有 看 好 自己 这 那 他 她 它 们
        与 及 或 被 把 为 于 之 以 而 其 吗 呢 吧""",
}

_ASKING = {
    "en": """what whats what's which who whom whose when where why how whether please tell explain describe define give
        show list name find know want need help say said mean means called many much""",
    "fr": """que quel quelle quels quelles qui quoi quand où comment pourquoi combien lequel laquelle lesquels
        lesquelles est-ce qu'est-ce quoi-ce svp dites dis expliquez explique décrivez décris donnez donne citez cite
        montrez liste peux pouvez veux voudrais savoir""",
    "de": """was welche welcher welches welchem welchen wer wem wen wessen wann wo woher wohin warum wieso weshalb wie
        wieviel wieviele bitte erkläre erklären nenne nennen zeige gib beschreibe""",
    "es": """qué que cuál cual cuáles cuales quién quien quiénes quienes cuándo cuando dónde donde adónde cómo como
        cuánto cuanto cuánta cuánta cuántos cuantos cuántas cuantas dime explica describe nombra""",
    "it": """che cosa cos quale quali chi quando dove perché come quanto quanta quanti quante dimmi spiega descrivi""",
    "pt": """que qual quais quem quando onde como porquê porque quanto quanta quantos quantas diga explique descreva""",
    "nl": """wat welke welk wie wanneer waar waarom hoe hoeveel leg noem geef beschrijf""",
    "ru": """что какой какая какое какие каких каким какую каком кто кого кому когда где куда откуда почему зачем как
        сколько чей чья чьё чьи назовите расскажите объясните""",
    "ar": """ما ماذا من متى أين اين لماذا كيف كم هل أي اي أية لم مَن""",
    "zh": """什么 甚么 谁 哪 哪个 哪些 哪里 何时 为什么 怎么 怎样 如何 多少 几 是否""",
}

FUNCTION_WORDS: dict[str, frozenset[str]] = {code: frozenset(words.split()) for code, words in _FUNCTION.items()}
"""Articles, prepositions, pronouns, auxiliaries."""

ASKING_WORDS: dict[str, frozenset[str]] = {code: frozenset(words.split()) for code, words in _ASKING.items()}
"""Words of a question that do not describe what it asks for."""

_NONE: frozenset[str] = frozenset()


def is_function_word(word: str, language: str) -> bool:
    """Say whether the lower-case *word* carries no content in *language*."""
    return word in FUNCTION_WORDS.get(language, _NONE)


def is_asking_word(word: str, language: str) -> bool:
    """Say whether the lower-case *word* only asks in *language*."""
    return word in ASKING_WORDS.get(language, _NONE)


def is_empty_word(word: str, language: str) -> bool:
    """Say whether the lower-case *word* is either of the two."""
    return is_function_word(word, language) or is_asking_word(word, language)
