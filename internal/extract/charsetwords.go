package extract

// charsetGroups are the charsets of languages with the same letters, the more
// frequent ones first. Their names are those of the WHATWG Encoding Standard.
var (
	westernCharsets  = []string{"windows-1252"}
	centralCharsets  = []string{"windows-1250", "iso-8859-2"}
	turkishCharsets  = []string{"windows-1254"}
	balticCharsets   = []string{"windows-1257"}
	russianCharsets  = []string{"windows-1251", "koi8-r", "ibm866", "iso-8859-5"}
	ukrainianCharset = []string{"windows-1251", "koi8-u"}
	greekCharsets    = []string{"windows-1253", "iso-8859-7"}
	hebrewCharsets   = []string{"windows-1255"}
	arabicCharsets   = []string{"windows-1256"}
)

// charsetLanguages are the languages of texts in old charsets. letters are the
// small letters of a language that are not ASCII, the frequent ones first. words
// are frequent words with such letters, from which the pairs of letters that are
// usual in the language are taken, too.
var charsetLanguages = [...]struct {
	lang, letters string
	charsets      []string
	words         string
}{
	{"en", "éèïöêñçüà", westernCharsets, "café naïve résumé fiancé cliché façade déjà señor coöperate über élite"},
	{"de", "üäößé", westernCharsets, `für über können müssen möglich größe grüße straße schöne später während natürlich zurück länder österreich
		gemäß außerdem ähnlich änderung übersicht löschen öffnen wählen gültig verfügbar ausführen hinzufügen prüfen höhe länge stück würde wäre hätte
		könnte müsste dürfen fähig größer weiß heißt groß schließen lösung nächste täglich jährlich märz fünf zwölf tür früh hören gehören führen
		bücher häuser männer präsident universität qualität büro maß fuß süß spaß gruß köln münchen zürich gebühr rückgabe überweisung fällig schlüssel
		menü geräte einträge verträge anträge grün kühl käse brötchen öl üben äpfel mädchen gäste fräulein möchte ärger ökonomie überall beschäftigt`},
	{"fr", "éèàêçîôûùâïœëü", westernCharsets, `été être même où déjà voilà très après créer données fichier clé numéro première dernière à système réseau
		mémoire sécurité équipe école études élève père mère frère français façon reçu ça garçon leçon côté bientôt hôtel contrôle août goût coûte sûr
		forêt tête fête fenêtre arrêt prêt intérêt âge tâche pâte naïf maïs noël cœur sœur œuvre nœud île maître connaître plaît dû là ô réunion annulée
		société président général problème modèle année journée durée activité qualité référence médecin préférence télévision décembre février`},
	{"es", "óíáéñúü", westernCharsets, `está también más así después según información número página días años año español niño señor mañana qué cómo
		dónde cuándo quién aquí allí sólo él sí té configuración sesión versión opción conexión reunión canción razón acción artículo único público música
		teléfono código método línea área último fácil difícil árbol mayoría país compañía energía todavía había sería podía tenía pequeño otoño montaña
		españa pingüino vergüenza jamón corazón avión jardín inglés francés interés café bebé perú rápido número búsqueda`},
	{"pt", "ãçáéíóêõàúâô", westernCharsets, `não são está também informação número página até você é à às ação função sessão versão opção ligação reunião
		português serviço preço começar três mês após só avó avô pôr câmara língua único público música código método área último fácil difícil árvore
		país história memória será há já irmão mão pão então coração cartão botão botões opções ações informações amanhã manhã lã força cabeça criança
		segurança licença açúcar saúde conteúdo usuário endereço são paulo`},
	{"it", "èàùòìé", westernCharsets, `è più perché così però già città università qualità società può sarà verrà giù lunedì martedì venerdì né sé cioè
		caffè tè libertà possibilità attività età metà papà là lì sì ciò andò fù tribù poiché affinché`},
	{"nl", "ëéïöüè", westernCharsets, "één coördinatie geïnstalleerd financiële reünie België ideeën zeeën patiënt industriële café geïnteresseerd coöperatie naïef hé"},
	{"sv", "äåöé", westernCharsets, `är på för också från när där så måndag lördag söndag två år åtta går får själv länge större största många något några hjälp
		välj öppna lösenord användare sätt även över under möte möjlig göra gör väl människor värld språk kött smör kärlek tillgänglig inställningar ändra
		spara återställ sök sökning före före får träffas sjö`},
	{"da", "øæåé", westernCharsets, `på være også når så får år får går måde både forår første større søndag lørdag køkken brød rødgrød fløde øl børn kører
		høre gøre før hjælp vælg adgangskode ændre læse væk værdi søg indstillinger nødvendig mål måned måske småt æble ære én blåbær bære præsident`},
	{"no", "øåæé", westernCharsets, `på være også når så får år går måte både første større søndag lørdag kjøkken brød øl kjøre høre gjøre før hjelp velg
		endre lese bort verdi søk innstillinger nødvendig mål måned kanskje små eple ære én blåbær bære språk`},
	{"fi", "äöå", westernCharsets, `että myös tämä sitä mitä ei ole päivä päivää hyvää hyvä äiti isä työ työtä yö yötä käyttää käyttäjä lisää näytä pää vielä
		enää täällä siellä pitää tehdä nähdä löytää pöytä ystävä ympäristö hetkinen määrä käsi väri tärkeä yhtä vähän seinä järvi mökki`},
	{"is", "áíðéóúöþæý", westernCharsets, "það þetta þess með við ég hún maður góðan daginn já að á í er ísland íslenska þú þér sögu öll bókin húsið"},
	{"pl", "ęąłóśżćńź", centralCharsets, `się że są także który być może jeżeli jeśli proszę dziękuję książka książki łódź kraków gdańsk poznań wrocław
		przykład później źródło świat życie człowiek miłość wartość możliwość część gość ilość wiadomość długość usuń zmień otwórz zamknij zapisz plików
		użytkownik hasło błąd błędy środa piątek styczeń kwiecień wrzesień październik więcej mój twój ósmy również między ciągle ręka pięć sześć dziewięć
		dziesięć tysiąc żółty zielony łąka góra córka chłopak dół słowo małe białe pół głowa ślub śnieg jaźń gęś już też także jeszcze żaden każdy cały
		gęślą zażółć spółka spółki umowę fakturę należność płatność sprzedaż adresów dokumentów plików ustawień połączenie wałbrzych państwo pański koń
		napisz ćwierć ćma możesz chcesz ową tą tę mogę są będzie będą zostać został został była było były miał miała`},
	{"cs", "íáéěřčšýžůúťňďó", centralCharsets, `že není může také která které který jsou být když více ještě při před přes příliš přidat použít soubor
		uložit otevřít zavřít změnit nastavení uživatel heslo chyba úterý středa čtvrtek pátek sobota neděle pondělí leden únor březen květen září říjen
		červen červenec žluťoučký kůň dům svůj můj různé důležité schůzka večer věc město světa člověk dítě děti říci říká řeka šéf škola žena život
		časem začátek končí účet úřad účel úvod ústav ďábel loďka zeď ještě těžký něco něj měl měla tři čtyři pět osm devět tisíc dvořák přijde až řádek
		stránka obrázek zpráva vytvořit použití všechny všech její jejích české čeština příklad kůže bůh hůl ředitel přednáška smlouva částka číslo`},
	{"sk", "áíéčžšýúťľôóňäďĺŕ", centralCharsets, `že nie môže tiež ktorá ktoré ktorý sú byť keď ešte pri pred príklad súbor uložiť otvoriť zatvoriť zmeniť
		nastavenia používateľ heslo chyba štvrtok piatok nedeľa máj jún júl svoj môj kôň dôležité schôdza večer vec mesto človek dieťa deti reka škola
		žena život začiatok končí účet úrad viac všetko všetky päť deväť tisíc stretnutie až svätý ľudia ľahko kľúč voľba veľa stĺp vŕba ďalej ďakujem
		správa stránka obrázok číslo`},
	{"hu", "áéöóőüíűú", centralCharsets, `és még már új több között után előtt ő nő idő időpont később először jövő erő könyv könyvek nagyon jó kérem
		köszönöm üdvözlet ügyfél ügyfelek ülés szünet szeptember őszi tűz tűrő árvíz tükör fúró gép szám számla számítógép felhasználó jelszó fájl fájlok
		megnyitás mentés törlés beállítások keresés hétfő szerda csütörtök péntek hónap év évek óra perc délután megbeszélés találkozó útmutató út úgy így
		híd víz írás ír magyarország város ország épület gyűjtemény gyűlés betű tőke kettő négy öt hét száz működik szükséges lehetőség lesz jövök
		ismerős felső alsó első belső érték`},
	{"ro", "ăîâşţșț", centralCharsets, `şi în că să după până când fără această aceasta acest către începe mâine pâine câine român română românia ştiu şedinţa
		informaţii funcţie opţiuni setări fişier fişiere ţară viaţă piaţă oraş bucureşti iaşi timişoara înainte între încă două toată fată casă masă`},
	{"hr", "čžšćđ", centralCharsets, `će već više također može čovjek žena život što još među možda država škola riječ noć kuća sljedeći tečaj godišnje
		računalo datoteka lozinka izađi promijeni riječi đak anđeo smještaj općina županija češće četvrtak ožujak lipanj`},
	{"sl", "čšž", centralCharsets, "če več še že človek žena življenje šola možno naslednji računalnik četrtek sreča noč kaj reči čas časa držav žal"},
	{"tr", "ışüçğöâî", turkishCharsets, `için çok şimdi değil bir yeni açık kapalı kapatıldı işık ışık gün güneş güneşli iyi dağ ağaç çocuk öğrenci öğretmen üç dört
		altı kırk yıl ayı yarın toplantı dosya dosyası kullanıcı şifre parola ayarlar değiştir aç sil ekle görüntüle türkçe türkiye istanbul ankara izmir
		büyük küçük güzel kötü yardım sağ sol önce sonra aşağı yukarı şehir ülke dünya insanlar çalışma çalışıyor başka başla bugün dün öğle akşamı
		günaydın teşekkür hoş geldiniz nasılsınız arasında olduğu olduğunu sayısı kızı adı ısı ıslak`},
	{"lt", "ėųšžūįąčę", balticCharsets, `ir už į ačiū žinią žinoma šis ši yra būti būtų kurių daugiau mėnuo metų savaitė ketvirtadienis šeštadienis susitikimas
		rytoj visų jūsų mūsų žmonės žmonių šalis šiuo kaip tačiau pradžia išsaugoti ieškoti lietuvių kalbą galėtų`},
	{"lv", "āīēšūņļžģčķ", balticCharsets, `un ir kā lai šis šī arī vairāk būt latviešu valoda rīga ģimene ķēde ļoti ņemt žēl čau tīkls jūs mūsu viņš viņa gads
		mēnesis diena sākums meklēt saglabāt rītdiena tikšanās`},
	{"et", "äõüöšž", balticCharsets, `või üks on mõni kõik võib tõesti päev hästi öö töö sõna õpetaja õhtu külm ümber mõne jõgi põld kõne`},
	{"ru", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъ", russianCharsets, `и в не на я что он с как это все она так его но да ты к у же вы за бы по только ее мне было вот от меня еще
		нет о из ему теперь когда даже ну вдруг ли если уже или ни быть был него до вас нибудь опять уж вам ведь там потом себя ничего ей может они тут где есть
		надо ней для мы тебя их чем была сам чтоб без будто чего раз тоже себе под будет ж тогда кто этот того потому этого какой совсем ним здесь этом один почти
		мой тем чтобы нее сейчас были куда зачем всех никогда можно при наконец два об другой хоть после над больше тот через эти нас про всего них какая много
		привет мир документ файл поиск встреча завтра девять цена рублей страница сервер настройка пользователь пароль время день год город дом работа слово
		система первый новый сказать человек жизнь рука дело место лицо друг глаз вопрос сила москва россия киев тест договор счет оплата адрес спасибо`},
	{"uk", "оаниівретслкдмупязьбгйчхжїцюшєщфґ", ukrainianCharset, `і в не на що він як це та до за від з про але у й його її їх є ви ми ні так чи якщо або при також може бути
		вже який яка які для після перед цей ця документ зустріч завтра привіт дякую україна київ місто сторінка пошук налаштування користувач пароль час день рік`},
	{"bg", "аоиетнрсвлкдпмзгябуъчцжщшхйфюь", []string{"windows-1251"}, `и на да за не се от с че по в като това до са но при този може как към ще има след само или още
		съм към първи българия софия град документ файл търсене настройки потребител парола време ден година утре среща здравей`},
	{"el", "αοιετσνηυρπκμλςωίγόδέχάθήύφβώξζψϊϋΰΐ", greekCharsets, `και το η ο να του την της των με σε για που από δεν θα τα είναι ναι όχι ένα μια στο στην τη αυτό αυτή μας σας
		καλημέρα ευχαριστώ συνάντηση αύριο ώρα εννέα έγγραφο αρχείο αναζήτηση ρυθμίσεις χρήστης κωδικός ημέρα έτος πόλη ελλάδα αθήνα όπως μετά πριν κάτι`},
	{"he", "יוהלאתרבמשנםדקחפעןכגטסזץךףצ", hebrewCharsets, `של את על לא זה זאת עם הוא היא הם אני אתה אנחנו כל גם כי אם או אבל יש אין מה מי איך כאן שם יותר אחד כן היום
		מחר שלום לכולם פגישה הפגישה תודה קובץ חיפוש הגדרות משתמש סיסמה יום שנה עיר ישראל ירושלים הבית בית ספר מסמך עברית`},
	{"ar", "المينرتوبةعدسفحكقجهطشصخىإأذثزغضئظءؤآ", arabicCharsets, `في من على إلى هذا هذه أن كان التي الذي ما لا عن مع كل بعد قبل بين هو هي هم نحن أو ثم إذا لم لن قد
		ملف بحث المستخدم كلمة المرور اليوم غدا الساعة التاسعة الاجتماع السلام عليكم شكرا مدينة العربية اللغة وثيقة`},
}
