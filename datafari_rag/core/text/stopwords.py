"""
Words that carry no content, and words that only ask, by language: tables, and nothing but tables.

A language is its two-letter code. A language that is not here has no stop words, which costs precision and never an
answer. The lists are short on purpose: a word that is rare in questions need not be here.
"""

from __future__ import annotations

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
