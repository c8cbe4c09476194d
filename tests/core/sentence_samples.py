"""Texts written for this purpose and split by hand: a bar marks the end of a sentence."""

SAMPLES = {
    "en": """Dr. Ada Moss arrived at 9 a.m. on Jan. 5.| She paid $3.50 for a coffee, i.e. less than at home.|
“Is it far?” she asked.| No, said Mr. Bell; it is 2.5 miles (see Fig. 3).| Really?!| The U.S. office of Kern & Co. Ltd.
has moved.| J. R. Hale wrote to Prof. Lund et al. in 1998.| They did not answer…| Version 2.1.3 runs on example.org.|

Opening hours|
Monday to Friday|
- bring your card|
- bring a pen|
1. Sign the form|
2. Send it back|
The service that was described in the last chapter of this handbook is offered in
every branch of the bank, even the small ones.| It is free.|""",
    "fr": """M. Dupont et Mme Leroy sont arrivés à 9 h.| Ils ont payé 3,50 € (cf. art. 12 du règlement).|
« Est-ce loin ? » demanda-t-elle.| Non, répondit le Dr Petit.| C'est à 2,5 km env. de la gare.| Quoi ?!|
L'arrêté du 5 janv. 2019 s'applique.| Voir p. 14, fig. 3.| La société J. B. Martin & Cie a déménagé.|

Horaires d'ouverture|
Du lundi au vendredi|
• apportez votre carte|
• apportez un stylo|
Le service décrit au dernier chapitre de ce guide est proposé dans toutes les agences de
la banque.| Il est gratuit.|""",
    "de": """Herr Dr. Kurz kam um 9 Uhr an.| Er zahlte z.B. 3,50 Euro, also ca. die Hälfte.|
„Ist es weit?“ fragte er.| Nein, sagte Fr. Lang.| Es sind 2,5 km bzw. eine halbe Stunde.| Wirklich?|
Siehe Abs. 3 und S. 14.| Die Firma gehört seit 1998 der Familie.| Das gilt nicht!|

Öffnungszeiten|
Montag bis Freitag|
- Ausweis mitbringen|""",
    "es": """El Sr. López y la Sra. Ruiz llegaron a las 9.| Pagaron 3,50 euros (véase pág. 12).|
¿Está lejos?| No, dijo el Dr. Mora.| ¡Qué bien!| Son 2,5 km aprox. desde la estación.| La ley núm. 5 se aplica.|

Horario|
De lunes a viernes|
• traiga su carnet|""",
    "ru": """Д-р Иванов приехал в 9 часов.| Он заплатил 350 руб. за билет.| Далеко ли это?| Нет, ответил он.|
Это 2,5 км от станции.| В 1998 г. они переехали.| Смотри рис. 3 на стр. 14.| Правда?!| Хорошо.|

Часы работы|
С понедельника по пятницу|""",
    "ar": """وصل الطبيب في الساعة التاسعة.| دفع ثلاثة دنانير.| هل هو بعيد؟| لا، قال السائق.| المسافة 2.5 كيلومتر.|
انتقلت الشركة في عام 1998.| حقا؟| نعم.|

ساعات العمل|
من الاثنين إلى الجمعة|""",
    "zh": """莫斯医生九点到达。|她花了三元五角买咖啡。|远吗？|不远，司机说。|路程是2.5公里。|公司1998年搬走了。|
真的吗！|是的。|

营业时间|
周一至周五|""",
}
